import type { JsonObject } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { PromptRow } from '../ledger/columns.ts';
import type { Graph, JobStatus } from '../protocol/v2.ts';
import type { Channel } from '../sockets/channel.ts';
import type { ProgressState } from '../translate/progress/progress-state.ts';
import { type LazyJson, readValue, setValue } from '../lib/lazy-json.ts';
import type { WaitReason } from './pending-reason.ts';

/**
 * The members of a live prompt that are known when it is submitted, or are read from its record.
 */
export type NewLivePrompt = Pick<
  PromptRow,
  'key' | 'promptId' | 'number' | 'clientId' | 'createdAtMs'
> & {
  readonly lazy: { readonly graph: LazyJson<Graph>; readonly extraData: LazyJson<JsonObject> };
  readonly targets: readonly string[];
  /** True when the job was submitted through v2: its caller follows v2 events. */
  readonly isV2Job?: boolean;
};

/** A prompt between its accepted `POST` and its history entry. */
export class LivePrompt {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly lazy: NewLivePrompt['lazy'];
  targets: readonly string[];
  /** True when the process that accepted the prompt has ended. */
  isTakenOver = false;
  readonly isV2Job: boolean;
  /** The credential of the caller, if there is one, is in memory only. */
  caller: Caller;
  readonly channel: Channel;
  /** `null`: no v2 job is known, and `status` is `undefined`. */
  jobId: string | null = null;
  /** A terminal status means that the job has ended and its history is being written. */
  status: JobStatus | undefined = undefined;
  /** The state that the events of the job have led to; `undefined` before the first one. */
  progress: ProgressState | undefined = undefined;
  cancelRequested = false;
  /** True when a process has answered the client: frames of the prompt may reach sockets. */
  isReleased = false;
  /**
   * Why the prompt has not started; without meaning after the start. Only `LivePrompts` sets it.
   */
  waitReason: WaitReason = 'submitting';
  /**
   * True while the prompt waits for a call of its user, which brings the key. Only `LivePrompts`
   * sets it.
   */
  lacksCredential = false;

  constructor(newPrompt: NewLivePrompt, caller: Caller, channel: Channel) {
    this.key = newPrompt.key;
    this.promptId = newPrompt.promptId;
    this.number = newPrompt.number;
    this.clientId = newPrompt.clientId;
    this.createdAtMs = newPrompt.createdAtMs;
    this.lazy = newPrompt.lazy;
    this.targets = newPrompt.targets;
    this.isV2Job = newPrompt.isV2Job ?? false;
    this.caller = caller;
    this.channel = channel;
  }

  get graph(): Graph {
    return readValue(this.lazy.graph);
  }

  set graph(value: Graph) {
    setValue(this.lazy.graph, value);
  }

  get extraData(): JsonObject {
    return readValue(this.lazy.extraData);
  }

  /**
   * True when some part of the run was reported. This is the difference between v1's `preparing`
   * and `executing`.
   */
  get hasEvidence(): boolean {
    const { runs, outputs } = this.progress ?? {};
    return (runs?.size ?? 0) + (outputs?.size ?? 0) > 0;
  }

  get startedAtMs(): number | null {
    return this.progress?.startedAtMs ?? null;
  }

  /** True when the end is known: the history is being written, or was written just now. */
  get isEnding(): boolean {
    return this.progress?.phase === 'ended';
  }
}
