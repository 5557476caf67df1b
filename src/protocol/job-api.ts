import type { Readable } from 'node:stream';
import { type V2ErrorCode, errorCodeOf } from './error-codes.ts';
import type { Json } from './json.ts';
import type { Asset, Graph, Job, JobStatus, NodeUi, Output, Progress } from './v2.ts';

/**
 * A caller. `user` tells users apart and is not secret. `credential` is secret and held in memory
 * only.
 */
export type Caller = { readonly user: string; readonly credential?: string };

/**
 * A v2 refusal as a value. `status` is the HTTP status that it has, or would have, in an answer.
 */
export type V2Error = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly details: Json;
  readonly retryAfterSeconds?: number;
  /**
   * Of a submission: it was not sent, or there may be a job. Absent: it was refused, and made no
   * job.
   */
  readonly outcome?: 'not sent' | 'unknown';
  /** True when the service says that it cannot reach its engine. */
  readonly engineDown?: true;
};

/**
 * True when a submission was refused for its content, so that an earlier attempt had the same
 * fault.
 */
export function isAboutContent({ status, code }: V2Error): boolean {
  return [400, 413, 422].includes(status) && errorCodeOf(code)?.isNotAboutContent !== true;
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: V2Error };

export type SubmitRequest = {
  readonly workflow: Graph;
  /** `workflow` as JSON text, if it exists already. */
  readonly workflowJson?: string;
  /** Secret, never stored. The contract allows no other members. */
  readonly extraData: {
    readonly api_key_comfy_org?: string;
    readonly auth_token_comfy_org?: string;
  };
  readonly idempotencyKey?: string;
  /**
   * A new id for the job, where the upstream lets its caller choose it. An id is used with one key
   * only.
   */
  readonly jobId?: string;
  /** Labels by which the job can be found again. Some upstreams do not take them. */
  readonly metadata?: { readonly [name: string]: string };
  /** The order in the queue: lower numbers run first, equal numbers by time. Advisory. */
  readonly order?: number;
  /**
   * The `prompt` and `workflow` texts to embed in saved files, when they differ from `workflow`.
   */
  readonly provenance?: { readonly prompt: Json; readonly extraPngInfo: Json };
  /** The W3C `traceparent` of the call, for the engine that runs the job. */
  readonly traceparent?: string;
};

/**
 * One event of a job. On connect: `status`, the latest `progress`, the latest `preview`; then live
 * events. A terminal `status` is the last event.
 *
 * Holdover adds two events. `x_node`: a node `started`, or `finished` with its output (`ui` absent:
 * it has none; `null`: v1 sends `executed` with `output: null`). `x_text`: a text of a node.
 *
 * `x_polled`: the progress is from a read of the job, which may be older than earlier events.
 * `x_with_step`: the next `progress` of that node belongs to this picture. `x_ends`: the service
 * reported the end of the job, and the job itself is being read.
 */
export type JobEvent = JobEventOf<keyof JobEventData>;

export type JobEventOf<Name extends keyof JobEventData> = {
  readonly [name in Name]: { readonly event: name; readonly data: JobEventData[name] };
}[Name];

export type JobEventData = {
  readonly status: {
    readonly status: JobStatus;
    readonly queue_position?: number | null;
    readonly x_cached_nodes?: readonly string[];
    readonly x_ends?: boolean;
    /** The job at this status. In an answer its members stand beside `status`. */
    readonly job?: Job;
  };
  readonly progress: Progress & { readonly x_polled?: boolean };
  readonly preview: {
    readonly node_id: string;
    readonly content_type: string;
    readonly bytes: Uint8Array;
    readonly x_with_step?: boolean;
    /** True when the node sends the picture itself. */
    readonly x_own?: boolean;
    /** True for the preview of a sampler. Most services mark no preview. */
    readonly x_sampler?: boolean;
  };
  readonly output: Output & { readonly x_with_step?: boolean };
  readonly x_node: {
    readonly node_id: string;
    readonly phase: 'started' | 'finished';
    readonly ui?: NodeUi | null;
  };
  readonly x_text: { readonly node_id: string; readonly text: string };
};

/**
 * A file on the local disk, hashed while it was written. The receiver owns it, and renames or
 * deletes it.
 */
export type SpooledFile = {
  readonly path: string;
  readonly sizeBytes: number;
  /** `blake3:<64 hex>` */
  readonly hash: string;
};

/** A file that is still arriving. */
export type GrowingFile = {
  readonly path: string;
  /**
   * Returns the number of bytes that can be read, as soon as it exceeds `knownBytes`, or when the
   * file is complete. Rejects when the rest will never come.
   */
  readonly sizeBeyond: (knownBytes: number) => Promise<number>;
};

/** An upload that was started while its bytes were still arriving. */
export type StartedUpload = {
  /**
   * Sends the facts that were not known before. `undefined` when the file has to be sent from its
   * beginning.
   */
  finish(upload: AssetUpload): Promise<Result<Asset> | undefined>;
  /** Ends an unfinished request, so that no file results from it. */
  cancel(): void;
};

/** The facts of an upload while its bytes still arrive. */
export type UploadStart = {
  readonly file: GrowingFile;
  readonly contentType: string;
  /** The maximum size of the file. */
  readonly atMostBytes: number;
};

/** Starts an upload; `undefined` when that is not possible now. */
export type StartUpload = (caller: Caller, upload: UploadStart) => StartedUpload | undefined;

export type AssetUpload = {
  /** The upload of these bytes, if it was started already. */
  readonly started?: StartedUpload;
  readonly file: SpooledFile;
  readonly contentType: string;
  readonly filePath: string;
  readonly tags?: readonly string[];
  readonly expiresInSeconds?: number;
  readonly expectedHash?: string;
  readonly idempotencyKey?: string;
};

/** `end` is inclusive, as in HTTP; in a requested range it may be `Infinity`. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * `range` is absent when these are all bytes, even if a part was requested. `totalBytes` is
 * `Infinity` when it is unknown.
 */
export type ContentBytes = {
  readonly kind: 'bytes';
  readonly stream: Readable;
  readonly contentType: string;
  readonly totalBytes: number;
  readonly range?: ByteRange;
  readonly etag?: string;
};

/** The bytes of an asset, or a link to them. */
export type Content =
  | ContentBytes
  | {
      readonly kind: 'redirect';
      readonly location: string;
      /** Reads the bytes behind the link. No credential is sent. */
      readonly open?: (range?: ByteRange) => Promise<Result<ContentBytes>>;
    };

export type JobListQuery = {
  readonly limit?: number;
  readonly cursor?: string;
  readonly status?: readonly JobStatus[];
  readonly metadata?: { readonly [name: string]: string };
};

/** A submission whose outcome is unknown, with the facts that help to find its job. */
export type LostSubmission = Pick<SubmitRequest, 'workflow' | 'metadata'> & {
  /** The secrets that it was sent with, while they are known. */
  readonly extraData?: SubmitRequest['extraData'];
  /** The time when its key was first sent, or an earlier one, by the clock of this process. */
  readonly sentAtMs: number;
  /** True when a job is known to belong to another submission. */
  readonly isClaimed?: (jobId: string) => Promise<boolean>;
};

/** The result of a search for the job of a lost submission. */
export type JobSearch = {
  /**
   * `none`: there will never be a job. `not listed`: the complete list lacks it, and only a request
   * that is still in progress may make it. `not seen`: a part of the list lacks it.
   */
  readonly kind: 'found' | 'none' | 'not listed' | 'not seen' | 'no list';
  readonly job?: Job;
  /** True for a service that may not promise to remember the keys of submissions. */
  readonly mayForgetKeys?: boolean;
};

export type JobWorkflow = { readonly workflow: Graph; readonly format: 'api' | 'save' };
export type JobEvents = AsyncIterable<JobEvent>;
export type JobPage = { readonly jobs: readonly Job[]; readonly next_cursor?: string };

/** The calls of the port that read jobs. */
export interface JobReads {
  /** Searches once for the job of a submission with unknown outcome. */
  search(caller: Caller, lost: LostSubmission): Promise<Result<JobSearch>>;
  get(caller: Caller, jobId: string): Promise<Result<Job>>;
  workflow(caller: Caller, jobId: string): Promise<Result<JobWorkflow>>;
  /** Live events until a terminal status or until `signal` aborts. */
  events(caller: Caller, jobId: string, signal: AbortSignal): Promise<Result<JobEvents>>;
  list(caller: Caller, query: JobListQuery): Promise<Result<JobPage>>;
}

/** The calls of the port for jobs. */
export interface JobCalls extends JobReads {
  /** Makes one attempt to submit a job. */
  submit(caller: Caller, request: SubmitRequest): Promise<Result<Job>>;
  cancel(caller: Caller, jobId: string): Promise<Result<Job>>;
}

/** The calls of the port for files. */
export interface AssetCalls {
  createAsset(caller: Caller, upload: AssetUpload): Promise<Result<Asset>>;
  assetFromHash(
    caller: Caller,
    request: Omit<AssetUpload, 'file' | 'contentType' | 'expectedHash' | 'filePath'> & {
      readonly hash: string;
      /** Absent: the path of the stored bytes. */
      readonly filePath?: string;
    },
  ): Promise<Result<Asset>>;
  hasBlob(caller: Caller, hash: string): Promise<Result<boolean>>;
  asset(caller: Caller, assetId: string): Promise<Result<Asset>>;
  deleteAsset(caller: Caller, assetId: string): Promise<Result<null>>;
  content(caller: Caller, assetId: string, range?: ByteRange): Promise<Result<Content>>;
}

export type Health = { readonly status: 'healthy'; readonly upstream: string };

/**
 * The port between the v1 API and the upstream that runs jobs: the embedded engine or a remote v2
 * service. Protocol refusals are returned as values. A rejected promise means a broken connection
 * or disk.
 */
export interface JobApi extends JobCalls, AssetCalls {
  health(): Promise<Result<Health>>;
}

export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

/** True when an error means that the requested resource does not exist, or not any more. */
export function isGone({ status }: { readonly status: number }): boolean {
  return status === 404 || status === 410;
}

/**
 * Makes an error as v2 answers it. `code` is stable: each one has a row in `ERROR_CODES`. `message`
 * is for people.
 */
export function v2Error(
  status: number,
  code: V2ErrorCode,
  message: string,
  more: Partial<V2Error> = {},
): V2Error {
  return { status, code, message, details: null, ...more };
}

export function refuse<T>(...error: Parameters<typeof v2Error>): Result<T> {
  return { ok: false, error: v2Error(...error) };
}
