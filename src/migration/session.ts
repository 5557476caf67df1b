import type { Graph, Job, JobStatus } from '../protocol/v2.ts';

/** A v1 call of a client, and its v2 calls. */
export type V1Call = {
  readonly method: string;
  /** The path and query, without tokens. */
  readonly target: string;
  readonly status: number;
  readonly v2: readonly string[];
};

/** One v2 action of a session, in the order of the v1 calls behind it. */
export type SessionEvent =
  | {
      readonly kind: 'upload';
      readonly assetId: string;
      /** The name in a v1 input, for example `sub/cat.png`. */
      readonly path: string;
      readonly contentType: string;
      /** The hash of its bytes, if v2 returns it. */
      readonly hash?: string | undefined;
    }
  | {
      readonly kind: 'submit';
      readonly jobId: string;
      /** The workflow that v2 got, with its references to files. */
      readonly workflow: Graph;
      /** The names of the secrets that were sent, without their values. */
      readonly secrets: readonly string[];
      /** True when the client sent `extra_pnginfo`, for which v2 has no field. */
      readonly hasExtraPngInfo: boolean;
    }
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly message: string;
      /** The workflow that v2 refused. Absent when something else was refused, or a part of it was accepted. */
      readonly workflow?: Graph | undefined;
    }
  | {
      readonly kind: 'cancel';
      readonly jobId: string;
      /** The time since the job was submitted. */
      readonly sinceSubmitMs: number;
    }
  | {
      readonly kind: 'download';
      readonly assetId: string;
      readonly filename: string;
      /** The parameters `preview` and `channel` of the call, with which v1 converts the picture. */
      readonly rendering: string | undefined;
    };

/** The end of a job of the session. */
export type SessionJob = {
  readonly status: JobStatus;
  /** How long the job waited until it ran; `null` when it never ran. */
  readonly queuedMs: number | null;
  readonly outputs: readonly {
    readonly id: string;
    readonly nodeId: string;
    readonly name: string;
    readonly hash?: string | null;
    /** True when v1 sent the output over the socket. */
    readonly isStreamed: boolean;
  }[];
};

/** Returns the facts about a job that a session needs. */
export function endedJob({ status, outputs, created_at, started_at }: Job): SessionJob {
  return {
    status,
    queuedMs: started_at === null ? null : Date.parse(started_at) - Date.parse(created_at),
    outputs: outputs.map((output) => ({
      id: output.id,
      nodeId: output.node_id,
      name: output.name,
      hash: output.hash,
      isStreamed: output.x_websocket === true,
    })),
  };
}

/** The actions of a legacy client, from its first call to its last. */
export type Session = {
  readonly calls: readonly V1Call[];
  readonly events: readonly SessionEvent[];
  readonly jobs: ReadonlyMap<string, SessionJob>;
  /** True when the client opened `/ws`. */
  readonly usedSocket: boolean;
};
