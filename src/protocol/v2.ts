import type { Json } from './json.ts';

/** One node of an API-format workflow; other members are preserved. */
export type GraphNode = {
  readonly class_type: string;
  readonly inputs: { readonly [name: string]: Json };
  readonly [extra: string]: Json;
};

/** An API-format workflow: node id → node. */
export type Graph = { readonly [nodeId: string]: GraphNode };

/** Job states in the order the v2 contract lists them. */
export const JOB_STATUSES = [
  'queued',
  'running',
  'succeeded',
  'canceling',
  'canceled',
  'failed',
  'expired',
] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];

/** True when the job cannot change any more. */
export const IS_TERMINAL = {
  queued: false,
  running: false,
  succeeded: true,
  canceling: false,
  canceled: true,
  failed: true,
  expired: true,
} as const satisfies Record<JobStatus, boolean>;

export const OUTPUT_TYPES = ['image', 'video', 'audio', 'text', 'file', 'latent'] as const;
export type OutputType = (typeof OUTPUT_TYPES)[number];

/** Returns the type of an output with this media type. */
export function outputTypeOf(contentType: string): OutputType {
  const [family] = contentType.split('/', 1);
  return OUTPUT_TYPES.find((type) => type === family) ?? 'file';
}

/** Complete progress snapshot; `value` is the overall fraction, 0 to 1. */
export type Progress = {
  readonly value: number;
  readonly nodes_done: number;
  readonly nodes_total: number;
  readonly current_node?: string | null;
  readonly current_node_class?: string | null;
  readonly step?: number | null;
  readonly steps?: number | null;
  readonly message?: string | null;
};

/**
 * A committed job output. `x_` fields are Holdover's additive extensions:
 * `x_temp` marks a preview file (v1 type `temp`), `x_subfolder` v1's folder,
 * `x_websocket` an image whose node delivers it over the socket only.
 */
export type Output = {
  readonly node_id: string;
  readonly name: string;
  readonly type: OutputType;
  readonly content_type: string;
  readonly size_bytes: number;
  readonly id: string;
  readonly hash: string | null;
  readonly url: string;
  readonly url_expires_at: string;
  readonly job_id?: string | null;
  readonly x_temp?: boolean;
  readonly x_subfolder?: string;
  readonly x_websocket?: boolean;
};

/**
 * Why a job failed. The `x_` members hold what v1's `execution_error` shows and v2 has no member
 * for.
 */
export type JobError = {
  readonly code: string;
  readonly message: string;
  readonly node_id?: string | null;
  readonly class_type?: string | null;
  readonly traceback?: string | null;
  readonly x_exception_type?: string;
  readonly x_current_inputs?: { readonly [name: string]: readonly Json[] };
};

/**
 * The output of a node for v1 clients: `executed.output` as v1 has it, lists by key. A file is
 * written `{x_asset: "<output id>"}`, and the v1 side turns it into a v1 file reference.
 */
export type NodeUi = { readonly [key: string]: readonly Json[] };

export type Job = {
  readonly id: string;
  readonly status: JobStatus;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly expires_at: string;
  readonly queue_position: number | null;
  readonly progress: Progress | null;
  readonly outputs: readonly Output[];
  readonly error: JobError | null;
  readonly metrics?: { readonly [name: string]: number | null };
  readonly urls: { readonly self: string; readonly events: string; readonly cancel: string };
  readonly metadata?: { readonly [name: string]: string };
  /** The nodes whose results were taken from the cache, when the job has started. */
  readonly x_cached_nodes?: readonly string[];
  /** The output of each finished node, by node id. */
  readonly x_ui?: { readonly [nodeId: string]: NodeUi };
  /**
   * The workflow after validation coerced its literal inputs. Only in the answer to a submission.
   */
  readonly x_workflow?: Graph;
};

export type Asset = {
  readonly id: string;
  readonly hash: string | null;
  readonly size_bytes: number;
  readonly content_type: string;
  readonly created_at: string;
  readonly url: string;
  readonly url_expires_at: string;
  readonly file_path?: string;
  readonly created_new?: boolean;
  readonly expires_at?: string | null;
  readonly job_id?: string | null;
  readonly tags?: readonly string[];
};

/** `{"__type":"core/ASSET","info":{…}}`, written wherever a workflow names a file. */
export type AssetRef = {
  readonly __type: 'core/ASSET';
  readonly info: { readonly id: string; readonly hash?: string; readonly file_path?: string };
};
