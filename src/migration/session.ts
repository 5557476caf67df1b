import type { Graph, Job, JobStatus } from '../protocol/v2.ts';

/** One v1 call a client made, and the v2 calls it became. */
export type V1Call = {
  readonly method: string;
  /** Path and query, without any token. */
  readonly target: string;
  readonly status: number;
  readonly v2: readonly string[];
};

/** One v2 action of a session, in the order of the v1 calls behind it. */
export type SessionEvent =
  | {
      readonly kind: 'upload';
      readonly assetId: string;
      /** As v1 names it in an input: `sub/cat.png`. */
      readonly path: string;
      readonly contentType: string;
      /** Hash of its bytes, where v2 gives it. */
      readonly hash?: string | undefined;
    }
  | {
      readonly kind: 'submit';
      readonly jobId: string;
      /** As v2 got it, references to files included. */
      readonly workflow: Graph;
      /** Names of the secrets that went along; their values are nowhere here. */
      readonly secrets: readonly string[];
      /** The client sent `extra_pnginfo`, which v2 has no field for. */
      readonly hasExtraPngInfo: boolean;
      /** v1 wrote more nodes into saved files than v2 got: those that no chosen output needs. */
      readonly isPartial: boolean;
      /** An input was written as `cat.png [input]`, and v1 wrote it so into saved files. */
      readonly namesFolder: boolean;
    }
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly message: string;
      /** As v2 got it; absent where the refusal was none of the workflow itself. */
      readonly workflow?: Graph | undefined;
    }
  | {
      readonly kind: 'cancel';
      readonly jobId: string;
      /** Time since the event before this one. */
      readonly pausedMs: number;
      /** Time since the job was submitted. */
      readonly sinceSubmitMs: number;
    }
  | {
      readonly kind: 'download';
      readonly assetId: string;
      readonly filename: string;
      /** `preview` or `channel`: v1 drew the picture anew. */
      readonly rendering: string | undefined;
    };

/** The end of a job of the session. */
export type SessionJob = {
  readonly status: JobStatus;
  /** How long it waited until it ran; `null`: it never ran. */
  readonly queuedMs: number | null;
  readonly outputs: readonly {
    readonly id: string;
    readonly nodeId: string;
    readonly name: string;
    readonly hash?: string | null;
    /** v1 delivered it over the socket. */
    readonly isStreamed: boolean;
  }[];
};

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
