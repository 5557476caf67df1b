import type { PreviewMime } from '../../protocol/binary-frames.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import type { FileRef, HistoryMessage, NodeOutput, V1Message } from '../../protocol/v1.ts';
import type { Graph, Job, JobError, NodeUi, Output } from '../../protocol/v2.ts';
import type { DocumentedException } from '../exception-types.ts';
import type { KnownFile, KnownFiles } from '../outputs.ts';
import type { Outcome } from '../status.ts';

/**
 * A read of the job. `settled`: the job has ended; a terminal `status` event is a hint to make this
 * read. `files` names all outputs of the job.
 */
export type JobRead = {
  readonly kind: 'snapshot' | 'settled';
  readonly job: Job;
  readonly files: KnownFiles;
};

/**
 * The inputs of the reducer, in the order in which the job consumer learns them. Inputs are stored
 * in the event log: names and kinds never change.
 */
export type ProgressInput = { readonly atMs: number } & (
  | { readonly kind: 'event'; readonly event: Exclude<JobEvent, { event: 'output' }> }
  /** An `output` event, with the v1 name that its file has got. */
  | {
      readonly kind: 'output';
      readonly output: Output & { readonly x_with_step?: boolean };
      readonly file: FileRef;
    }
  | JobRead
  /** The job is gone, and its end is unknown. */
  | { readonly kind: 'lost'; readonly reason: string }
  /** Time has passed; see `idleDueMs`. */
  | { readonly kind: 'idle' }
);

/**
 * `result`: the picture is a result, which no socket may miss. `own`: a preview that a node sends
 * itself. `sampler`: the preview of a sampler, which depends on settings. `unmarked`: a service does
 * not tell which of the two it is.
 */
export type PictureKind = 'result' | 'own' | 'sampler' | 'unmarked';

type PictureOfNode = {
  readonly nodeId: string;
  readonly displayNodeId: string;
  readonly kind: PictureKind;
};

/** A picture of a node. */
export type Picture = PictureOfNode & { readonly mime: PreviewMime; readonly bytes: Uint8Array };

/** A picture of a node, or one that has to be fetched. */
export type PictureEffect =
  | Picture
  | (PictureOfNode & { readonly assetId: string; readonly contentType: string });

/** The v1 message of that type. */
export type MessageOf<T extends V1Message['type']> = Extract<V1Message, { type: T }>;

/** One frame of a prompt. `P` is the type of its picture, if it has one. */
export type FrameOf<P> =
  | {
      readonly kind: 'json';
      readonly message: V1Message;
      /**
       * The `exception_type` for clients of the hosted service. The message has the node's own
       * class.
       */
      readonly documented?: DocumentedException;
    }
  /**
   * A step. v1 sends a type 4 picture between the two messages, and a type 1 picture after them.
   */
  | {
      readonly kind: 'step';
      /** Absent while the `progress_state` of a large graph is delayed. */
      readonly state?: MessageOf<'progress_state'>;
      readonly progress: MessageOf<'progress'>;
      readonly picture?: P;
    }
  | { readonly kind: 'picture'; readonly picture: P }
  /** v1's binary TEXT frame. */
  | { readonly kind: 'text'; readonly nodeId: string; readonly text: string };

/** One thing to send; effects are sent in order. */
export type ProgressEffect =
  | FrameOf<PictureEffect>
  /** Always the last effect: write the history, send `queue_remaining`, then send `closing`. */
  | { readonly kind: 'end'; readonly outcome: Outcome; readonly closing: MessageOf<'executing'> };

/** The state of a node in v1's `progress_state`. */
export type NodeRun = {
  readonly value: number;
  readonly max: number;
  readonly state: 'running' | 'finished';
  /** True when the node has reported a step. The first step may equal v1's initial one. */
  readonly hasReported: boolean;
  /** The `max` of earlier passes of the node, the newest last. */
  readonly earlierMaxes: readonly number[];
  /** `null`: the start of the node was not reported. */
  readonly startedAtMs: number | null;
  /** `null`: the node is running. */
  readonly endedAtMs: number | null;
};

/**
 * The progress of one prompt from `execution_start` to its end. The members of a state never
 * change, but its collections are passed on to the next state and grow, so that the cost of an
 * input does not depend on the number of nodes. Only the newest state may be reduced.
 */
export type ProgressState = {
  readonly phase: 'new' | 'started' | 'ended';
  readonly promptId: string;
  readonly graph: Graph;
  /** True when the upstream reports each node itself: nothing is derived from progress any more. */
  readonly isExact: boolean;
  /** The highest `value` that an exact upstream has reported; it never decreases there. */
  readonly overall: number;
  readonly cachedNodes: readonly string[] | null;
  readonly cachedSent: boolean;
  /** The node that the last `executing` message named. */
  readonly current: string | null;
  readonly runs: Map<string, NodeRun>;
  /** When `progress_state` was sent last, and whether it has changed since. */
  readonly stateSentAtMs: number;
  readonly hasStateChanged: boolean;
  /** The nodes that have been computed. Nodes from the cache are not among them. */
  readonly executed: string[];
  readonly files: Map<string, KnownFile>;
  readonly outputs: Map<string, Output>;
  /** The listed outputs, by the node that shows them. */
  readonly outputsOf: Map<string, Output[]>;
  /** Nodes whose output names files that have no v1 name yet. */
  readonly unnamedUi: Map<string, NodeUi>;
  /** The nodes with files that were not sent yet, and the time since when. */
  readonly unsentFiles: Map<string, number>;
  /** The last `executed` output of each node. */
  readonly sentOutputs: Map<string, NodeOutput | null>;
  /** A picture that belongs to the next step of its node. */
  readonly pendingPicture: { readonly picture: PictureEffect; readonly sinceMs: number } | null;
  /** The messages in history: the start, the cached nodes, and one end. */
  readonly messages: readonly HistoryMessage[];
  readonly outcome: Outcome | null;
  readonly error: JobError | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
};

/** The initial state of a prompt. */
export function initialProgress(promptId: string, graph: Graph): ProgressState {
  return {
    promptId,
    graph,
    phase: 'new',
    isExact: false,
    overall: 0,
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
