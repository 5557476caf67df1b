import type { Readable } from 'node:stream';
import type { Json } from './json.ts';
import type { Asset, Graph, Job, JobStatus, NodeUi, Output, Progress } from './v2.ts';

/** Who asks. `user` tells users apart and is no secret; `credential` is, and lives in memory only. */
export type Caller = { readonly user: string; readonly credential?: string };

/** A v2 refusal as a value: `status` is the HTTP status it has or would have on the wire. */
export type V2Error = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly details: Json;
  readonly retryAfterSeconds?: number;
  /**
   * Of a submission: it never left us, it made no job for certain and for good, it made none for
   * certain but used its key up, it was refused after an attempt nobody knows the end of, or nobody
   * knows. The last two may have left a job behind; they are never sent again under another key.
   */
  readonly outcome?: 'not_sent' | 'refused' | 'not_taken' | 'refused_late' | 'unknown';
  /** The service itself says that it cannot reach the engine behind it. */
  readonly engineDown?: true;
};

const CONTENT_STATUSES = new Set([400, 413, 422]);
const NOT_CONTENT = new Set(['idempotency_key_reuse', 'deployment_stopped']);

/** Whether a submission was refused for what it is: it was no better at an earlier attempt. */
export function isAboutContent({ status, code }: Pick<V2Error, 'status' | 'code'>): boolean {
  return CONTENT_STATUSES.has(status) && !NOT_CONTENT.has(code);
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: V2Error };

export type SubmitRequest = {
  readonly workflow: Graph;
  /** `workflow` as JSON text, where it was written already. */
  readonly workflowJson?: string;
  /** Closed in the contract; secret; never stored. */
  readonly extraData: {
    readonly api_key_comfy_org?: string;
    readonly auth_token_comfy_org?: string;
  };
  readonly idempotencyKey?: string;
  /** Labels for finding the job again; not every upstream takes them. */
  readonly metadata?: { readonly [name: string]: string };
  /** Queue order, lower runs first; ties by submission. Advisory. */
  readonly order?: number;
  /** What saved files should carry as their `prompt` and `workflow` texts, when it is not `workflow`. */
  readonly provenance?: { readonly prompt: Json; readonly extraPngInfo: Json };
};

/**
 * One event of a job. On connect: `status`, the latest `progress`, the latest `preview`; then live;
 * a terminal `status` is the last one. `x_node` and `x_text` are Holdover's additive events:
 * a node `started`, or `finished` with what it shows (`ui` absent: it shows nothing and says
 * nothing; `null`: v1 says `executed` with `output: null`).
 * `x_with_step` says that the next `progress` of that node belongs to this picture. `x_ends` says
 * that the service called the job over, and that the job itself is being asked how it ended.
 */
export type JobEvent =
  | {
      readonly event: 'status';
      readonly data: {
        readonly status: JobStatus;
        readonly queue_position?: number | null;
        readonly x_cached_nodes?: readonly string[];
        readonly x_ends?: boolean;
        /** With a terminal status, the job as it ended; on the wire its members stand beside `status`. */
        readonly job?: Job;
      };
    }
  | { readonly event: 'progress'; readonly data: Progress }
  | {
      readonly event: 'preview';
      readonly data: {
        readonly node_id: string;
        readonly content_type: string;
        readonly bytes: Uint8Array;
        readonly x_with_step?: boolean;
        /** The node sends it by itself; absent: it is the preview of a sampler. */
        readonly x_own?: boolean;
      };
    }
  | { readonly event: 'output'; readonly data: Output & { readonly x_with_step?: boolean } }
  | {
      readonly event: 'x_node';
      readonly data: {
        readonly node_id: string;
        readonly phase: 'started' | 'finished';
        readonly ui?: NodeUi | null;
      };
    }
  | {
      readonly event: 'x_text';
      readonly data: { readonly node_id: string; readonly text: string };
    };

/** A file on local disk, hashed while it was written. The receiver takes it over (renames or deletes it). */
export type SpooledFile = {
  readonly path: string;
  readonly sizeBytes: number;
  /** `blake3:<64 hex>` */
  readonly hash: string;
};

export type AssetUpload = {
  readonly file: SpooledFile;
  readonly contentType: string;
  readonly filePath: string;
  readonly tags?: readonly string[];
  readonly expiresInSeconds?: number;
  readonly expectedHash?: string;
  readonly idempotencyKey?: string;
};

/** `end` is inclusive, as in HTTP; of a range that is asked for it may be `Infinity`. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * `range` is absent when these are all bytes, even if some of them were asked for; `totalBytes` is
 * `Infinity` when nobody says how many there are.
 */
export type ContentBytes = {
  readonly kind: 'bytes';
  readonly stream: Readable;
  readonly contentType: string;
  readonly totalBytes: number;
  readonly range?: ByteRange;
  readonly etag?: string;
};

/** Bytes of an asset, or where they are. */
export type Content =
  | ContentBytes
  | {
      readonly kind: 'redirect';
      readonly location: string;
      /** Reads what is there, as anybody could who holds the link: no credential goes along. */
      readonly open?: (range?: ByteRange) => Promise<Result<ContentBytes>>;
    };

export type JobListQuery = {
  readonly limit?: number;
  readonly cursor?: string;
  readonly status?: readonly JobStatus[];
  readonly metadata?: { readonly [name: string]: string };
};

/** A submission whose outcome is unknown, as far as it helps to find its job. */
export type LostSubmission = Pick<SubmitRequest, 'workflow' | 'metadata'> & {
  /** As it was sent, while that is known. */
  readonly extraData?: SubmitRequest['extraData'];
  /** When its key was first sent, or earlier, by our clock. */
  readonly sentAtMs: number;
  /** Whether a job is known to be another submission's. */
  readonly isClaimed?: (jobId: string) => Promise<boolean>;
};

/**
 * The result of a search for a lost submission. `isCertain`: a job that is not there never will be.
 * `isListed`: the service's list is whole and lacks it; only a request on its way may still make it.
 */
type Recovered = {
  readonly job: Job | null;
  readonly isCertain: boolean;
  readonly isListed: boolean;
};

/**
 * The port between the v1 surface and whatever runs jobs: the embedded engine or a remote v2 service.
 * Protocol refusals come back as values; a rejected promise means broken plumbing.
 */
export interface JobApi {
  submit(caller: Caller, request: SubmitRequest): Promise<Result<Job>>;
  /** Looks once for the job a submission of unknown outcome left behind. */
  recover(caller: Caller, lost: LostSubmission): Promise<Result<Recovered>>;
  get(caller: Caller, jobId: string): Promise<Result<Job>>;
  workflow(
    caller: Caller,
    jobId: string,
  ): Promise<Result<{ workflow: Graph; format: 'api' | 'save' }>>;
  /** Live events until a terminal status or until `signal` aborts. */
  events(
    caller: Caller,
    jobId: string,
    signal: AbortSignal,
  ): Promise<Result<AsyncIterable<JobEvent>>>;
  cancel(caller: Caller, jobId: string): Promise<Result<Job>>;
  list(
    caller: Caller,
    query: JobListQuery,
  ): Promise<Result<{ jobs: readonly Job[]; next_cursor?: string }>>;
  createAsset(caller: Caller, upload: AssetUpload): Promise<Result<Asset>>;
  assetFromHash(
    caller: Caller,
    request: Omit<AssetUpload, 'file' | 'contentType' | 'expectedHash' | 'filePath'> & {
      readonly hash: string;
      /** Left out, the path the bytes are known by. */
      readonly filePath?: string;
    },
  ): Promise<Result<Asset>>;
  hasBlob(caller: Caller, hash: string): Promise<Result<boolean>>;
  asset(caller: Caller, assetId: string): Promise<Result<Asset>>;
  deleteAsset(caller: Caller, assetId: string): Promise<Result<null>>;
  content(caller: Caller, assetId: string, range?: ByteRange): Promise<Result<Content>>;
  health(): Promise<Result<{ status: 'healthy'; upstream: string }>>;
}

export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

const CAPACITY_CODES: ReadonlySet<string> = new Set([
  'queue_full',
  'deployment_not_ready',
  'rate_limited',
]);

/** Whether a submission is refused for lack of room, which may be there later. */
export function isCapacityRefusal({ status, code }: V2Error): boolean {
  return status === 429 && CAPACITY_CODES.has(code);
}

/** Whether an error means that what was asked for is not there, now or any more. */
export function isGone({ status }: Pick<V2Error, 'status'>): boolean {
  return status === 404 || status === 410;
}

export function refuse<T>(
  status: number,
  code: string,
  message: string,
  more: {
    readonly details?: Json;
    readonly retryAfterSeconds?: number;
    readonly outcome?: NonNullable<V2Error['outcome']>;
  } = {},
): Result<T> {
  const { details = null, ...rest } = more;
  return { ok: false, error: { status, code, message, details, ...rest } };
}
