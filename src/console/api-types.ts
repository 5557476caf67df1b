// The JSON of `/holdover/api/*`. The page imports these types; docs/console-api.md describes them.
import type { ReportedClient } from '../migration/usage-report.ts';
import type { PendingReason } from '../prompts/pending-reason.ts';
import type { FileRef } from '../protocol/v1.ts';
import type { ListedStatus } from '../translate/status.ts';

/** `GET /holdover/api/session` */
export type SessionAnswer = ServerFacts & {
  readonly is_operator: boolean;
  /** Why the caller is not the operator; `null` for the operator. */
  readonly operator_reason: string | null;
  /** The base address to which clients are pointed. */
  readonly address: string;
};

/** The facts about a server that never change. */
export type ServerFacts = {
  readonly version: string;
  readonly upstream: string;
  readonly upstream_kind: 'embedded' | 'remote';
  /** True when the server requires its token from every caller. */
  readonly needs_token: boolean;
};

/** One prompt in `GET /holdover/api/job-list`. */
export type JobSummary = {
  /** Tells prompts apart, also those with the same id. Opaque. */
  readonly key: string;
  readonly id: string;
  readonly job_id: string | null;
  /** The name of the workflow, else the prefix of its output files and the number of its nodes. */
  readonly name: string;
  readonly client_id: string | null;
  /** The API through which it was submitted. */
  readonly api: 'v1' | 'v2';
  readonly status: ListedStatus;
  readonly created_at_ms: number;
  readonly started_at_ms: number | null;
  readonly ended_at_ms: number | null;
  readonly node_count: number | null;
  readonly outputs_count: number;
  readonly preview: FileRef | null;
  readonly error: string | null;
  /** The place in the queue, from 1; `null` when it is not waiting. */
  readonly position: number | null;
};

/** `GET /holdover/api/job-list` */
export type JobListAnswer = {
  readonly jobs: readonly JobSummary[];
  /** Send it as `cursor` to get the jobs that follow; `null` at the end. */
  readonly next_cursor: string | null;
  /** The number of the caller's prompts in each state, whatever the filter. */
  readonly counts: Readonly<Record<ListedStatus, number>>;
};

/** State of one node of a job. */
export type NodeStateWord =
  | 'waiting'
  | 'cached'
  | 'running'
  | 'done'
  | 'failed'
  /** The node was running when the job was cancelled. */
  | 'stopped';

export type JobNode = {
  readonly id: string;
  readonly class_type: string;
  readonly title: string;
  readonly state: NodeStateWord;
  /** How long the node ran, or has run so far, in milliseconds; `null` when it is not known. */
  readonly ran_ms: number | null;
  /** The inputs of the node that are not links. Long values are cut. */
  readonly values: readonly { readonly input: string; readonly text: string }[];
  readonly links: readonly {
    readonly input: string;
    readonly from: string;
    readonly slot: number;
  }[];
};

/** A file that an input of a node names. */
export type JobInput = FileRef & { readonly node: string; readonly input: string };

export type JobFile = FileRef & { readonly node: string; readonly list: string };

/** `GET /holdover/api/job?id=` */
export type JobAnswer = {
  readonly job: JobSummary;
  /** The reason why the job has not started; `null` when it has started, or its end was requested. */
  readonly pending: {
    readonly reason: PendingReason;
    readonly text: string;
    /** The part of `/readyz` that reports the reason as well. */
    readonly readyz_part: 'queue' | 'upstream' | null;
  } | null;
  readonly nodes: readonly JobNode[];
  readonly inputs: readonly JobInput[];
  readonly outputs: readonly JobFile[];
  /** The texts that nodes show, by node. */
  readonly texts: readonly { readonly node: string; readonly text: string }[];
  readonly messages: readonly {
    readonly type: string;
    readonly at_ms: number | null;
    readonly text: string;
  }[];
  readonly error: {
    readonly node: string;
    readonly node_type: string;
    readonly type: string;
    readonly message: string;
    readonly traceback: string;
  } | null;
  /** The workflow in API format, as text, since its numbers may not fit a double. */
  readonly graph_json: string;
  /** The workflow of the front end as text, if it was sent. */
  readonly workflow_json: string | null;
};

/** `GET /holdover/api/job/code?id=&language=` */
export type CodeAnswer = {
  readonly language: 'python' | 'typescript';
  readonly file: string;
  readonly code: string;
  /** The files that the code expects beside it. */
  readonly files: readonly string[];
};

/** One line of the inspector. Members that a kind does not have are absent. */
export type TrafficEntry = {
  readonly id: number;
  /** Rises with every change of any entry. */
  readonly revision: number;
  readonly kind: 'call' | 'frame' | 'v2_call' | 'v2_event';
  readonly at_ms: number;
  /** The time from start to end; `null` when the entry has not ended, or has no duration. */
  readonly ms: number | null;
  readonly prompt_id: string | null;
  readonly job_id: string | null;
  /** The call or event that caused this one. */
  readonly cause_id: number | null;
  /** True for traffic of another user, which only the operator gets. */
  readonly is_other_user: boolean;
  /** For example `POST`. For a v2 call, the method of the request that it stands for. */
  readonly method?: string;
  /**
   * The path and query without credentials. For a v2 call, the pattern, for example
   * `/api/v2/jobs/{id}`.
   */
  readonly target?: string;
  readonly api?: 'v1' | 'v2' | 'other';
  readonly status?: number;
  readonly response_bytes?: number;
  /** The calling program, as it names itself. */
  readonly agent?: string;
  readonly client_id?: string;
  readonly direction?: 'in' | 'out';
  /** The socket of a frame. */
  readonly sid?: string;
  /** For example `executing` or `status`. For an event, its name. */
  readonly type?: string;
  /** The beginning of a frame or an event, as readable text. */
  readonly text?: string;
  readonly bytes?: number;
  /** The media type of the picture in a frame, an event or an answer. */
  readonly picture?: string;
};

/** `GET /holdover/api/traffic?after=&scope=` */
export type TrafficAnswer = {
  /** The id of this process. With several servers each has entries of its own. */
  readonly server: string;
  /** The number of servers that share the ledger, including this one. */
  readonly servers: number;
  /** Send `server.revision` as `after` to get the changes after this answer. */
  readonly revision: number;
  readonly entries: readonly TrafficEntry[];
  /** The number of entries that were removed because their memory was full. */
  readonly dropped: number;
  readonly memory_bytes: number;
  /** The oldest entry that still exists; all older ones were removed. */
  readonly oldest_id: number;
};

export type TrafficBody = {
  readonly content_type: string;
  readonly bytes: number;
  /** The body as text; `null` when it is not text. */
  readonly text: string | null;
  /** True when only the beginning of the body was recorded. */
  readonly is_cut: boolean;
  readonly note: string | null;
};

/** `GET /holdover/api/traffic/entry?id=` */
export type TrafficDetail = {
  readonly entry: TrafficEntry;
  readonly request_headers: readonly (readonly [string, string])[];
  readonly response_headers: readonly (readonly [string, string])[];
  readonly request: TrafficBody | null;
  readonly response: TrafficBody | null;
};

/** One measurement of the server. A member is `null` when it was not measured, or nothing could be measured. */
export type FigureSample = {
  readonly at_ms: number;
  readonly queued: number;
  readonly running: number;
  readonly outbox: number;
  readonly sockets: number;
  /** The number of prompts that ended since the previous sample, per minute. */
  readonly ended_per_minute: number | null;
  readonly requests_per_second: number | null;
  readonly latency_p50_ms: number | null;
  readonly latency_p95_ms: number | null;
  readonly memory_bytes: number;
  readonly upstream_streams: number;
  /** The bytes of stored files, measured once a minute. */
  readonly disk_bytes: number;
};

/** `GET /holdover/api/server`; for the operator only. */
export type ServerAnswer = ServerFacts & {
  /** The name of its machine or container. */
  readonly host: string;
  readonly node: string;
  readonly health: { readonly is_good: boolean; readonly reason: string | null };
  readonly started_at_ms: number;
  /** The number of servers that share the ledger, including this one. */
  readonly servers: number;
  /**
   * The number of processes that run jobs of a shared queue; `null` when this process or a service runs the jobs.
   */
  readonly workers: number | null;
  /** The samples of the last hour, oldest first. The last one is of the moment of this answer. */
  readonly samples: readonly FigureSample[];
  readonly limits: readonly {
    readonly name: string;
    /** The flag that sets the limit; empty: the machine does, or it is a constant. */
    readonly flag: string;
    readonly used: number;
    readonly limit: number;
    readonly unit: 'count' | 'bytes';
  }[];
  readonly warnings: readonly {
    readonly code: string;
    readonly text: string;
    readonly action: string;
  }[];
};

/** `GET /holdover/api/clients?scope=` */
export type ClientsAnswer = { readonly clients: readonly ReportedClient[] };
