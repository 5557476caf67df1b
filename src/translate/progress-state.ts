import type { PreviewMime } from '../protocol/binary-frames.ts';
import type { JobEvent } from '../protocol/job-api.ts';
import type { FileRef, HistoryMessage, NodeOutput, V1Message } from '../protocol/v1.ts';
import type { Graph, Job, JobError, NodeUi, Output } from '../protocol/v2.ts';
import type { DocumentedException } from './exception-types.ts';
import type { KnownFile, KnownFiles } from './outputs.ts';
import type { Outcome } from './status.ts';

/** What the follower of a job tells the reducer, in the order it learns it. */
export type ProgressInput =
  | {
      readonly kind: 'event';
      readonly event: Exclude<JobEvent, { event: 'output' }>;
      readonly atMs: number;
    }
  /** An `output` event, with the v1 name its file was given. */
  | {
      readonly kind: 'output';
      readonly output: Output & { readonly x_with_step?: boolean };
      readonly file: FileRef;
      readonly atMs: number;
    }
  /** A poll of a job that has not ended; `files` names every one of its outputs. */
  | {
      readonly kind: 'snapshot';
      readonly job: Job;
      readonly files: KnownFiles;
      readonly atMs: number;
    }
  /** The authoritative read of an ended job. A terminal `status` event is a hint to make it. */
  | {
      readonly kind: 'settled';
      readonly job: Job;
      readonly files: KnownFiles;
      readonly atMs: number;
    }
  /** The job is gone and nobody can say how it ended. */
  | { readonly kind: 'lost'; readonly reason: string; readonly atMs: number }
  /** It was taken out of the queue. */
  | { readonly kind: 'cancelled-before-start'; readonly atMs: number }
  /** Time has passed; see `idleDueMs`. */
  | { readonly kind: 'idle'; readonly atMs: number };

/**
 * A result delivered over the socket, which no socket may miss; a preview that a node sends by
 * itself; or the preview of a sampler, which is a matter of settings.
 */
export type PictureKind = 'result' | 'own' | 'sampler';

/** A picture of a node; one that is only an asset is for the follower to fetch. */
export type PictureEffect = {
  readonly nodeId: string;
  readonly displayNodeId: string;
  readonly kind: PictureKind;
} & (
  | { readonly mime: PreviewMime; readonly bytes: Uint8Array }
  | { readonly assetId: string; readonly contentType: string }
);

type MessageOf<T extends V1Message['type']> = Extract<V1Message, { type: T }>;

/** What is to be sent, in this order. */
export type ProgressEffect =
  | {
      readonly kind: 'json';
      readonly message: V1Message;
      /** `exception_type` for clients of the hosted service; the message has the node's own word. */
      readonly documented?: DocumentedException;
    }
  /** v1 sends a type 4 picture between the two messages, a type 1 picture after them. */
  | {
      readonly kind: 'step';
      /** Absent while that of a large graph is held back. */
      readonly state?: MessageOf<'progress_state'>;
      readonly progress: MessageOf<'progress'>;
      readonly picture?: PictureEffect;
    }
  | { readonly kind: 'picture'; readonly picture: PictureEffect }
  /** v1's binary TEXT frame. */
  | { readonly kind: 'text'; readonly nodeId: string; readonly text: string }
  /** Always the last: write history, say `queue_remaining`, then send `closing`. */
  | { readonly kind: 'end'; readonly outcome: Outcome; readonly closing: MessageOf<'executing'> };

/** What v1's `progress_state` knows of a node. */
export type NodeRun = {
  readonly value: number;
  readonly max: number;
  readonly state: 'running' | 'finished';
  /** It has told a step; the first one may equal what v1 starts with. */
  readonly hasReported: boolean;
};

/**
 * One prompt on its way from `execution_start` to its end. The members of a state never change; its
 * collections are handed on to the next state and grow, so that an input costs the same however many
 * nodes have begun. Only the newest state may be stepped on.
 */
export type ProgressState = {
  readonly phase: 'new' | 'started' | 'ended';
  readonly promptId: string;
  readonly graph: Graph;
  /** The upstream tells of each node itself; nothing is derived from progress any more. */
  readonly isExact: boolean;
  readonly cachedNodes: readonly string[] | null;
  readonly cachedSent: boolean;
  /** The node `executing` named last. */
  readonly current: string | null;
  readonly runs: Map<string, NodeRun>;
  /** When `progress_state` was said last, and whether it has changed since: see `sayNodes`. */
  readonly stateSentAtMs: number;
  readonly hasStateChanged: boolean;
  /** Finished by computing; nodes taken from the cache are not among them. */
  readonly executed: string[];
  readonly files: Map<string, KnownFile>;
  readonly outputs: Map<string, Output>;
  /** The listed ones by the node that shows them. */
  readonly outputsOf: Map<string, Output[]>;
  /** Nodes that say what they show in files that have no name yet. */
  readonly unnamedUi: Map<string, NodeUi>;
  /** Nodes with files nobody was told of, and since when. */
  readonly unsentFiles: Map<string, number>;
  /** What `executed` said last of each node. */
  readonly sentOutputs: Map<string, NodeOutput | null>;
  /** A picture that belongs to the next step of its node. */
  readonly pendingPicture: { readonly picture: PictureEffect; readonly sinceMs: number } | null;
  /** What history keeps: start, cached, one end. */
  readonly messages: readonly HistoryMessage[];
  readonly outcome: Outcome | null;
  readonly error: JobError | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
};

/** The state of a prompt of which nothing has been said yet. */
export function initialProgress({
  promptId,
  graph,
}: Pick<ProgressState, 'promptId' | 'graph'>): ProgressState {
  return {
    promptId,
    graph,
    phase: 'new',
    isExact: false,
    cachedNodes: null,
    cachedSent: false,
    current: null,
    runs: new Map(),
    stateSentAtMs: Number.NEGATIVE_INFINITY,
    hasStateChanged: false,
    executed: [],
    files: new Map(),
    outputs: new Map(),
    outputsOf: new Map(),
    unnamedUi: new Map(),
    unsentFiles: new Map(),
    sentOutputs: new Map(),
    pendingPicture: null,
    messages: [],
    outcome: null,
    error: null,
    startedAtMs: null,
    endedAtMs: null,
  };
}

/** Something of the run was seen: the difference between v1's `preparing` and `executing`. */
export function hasEvidence(state: ProgressState): boolean {
  return state.runs.size > 0 || state.outputs.size > 0;
}
