import type { LivePrompts, LivePrompt, NewLivePrompt } from '../live-prompts.ts';
import { createLazyJson, unload, setValue, readValue } from '../../lib/lazy-json.ts';

/** Number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;

/** Unloads the graph of a prompt that is far back in the queue. */
export function unloadIfFar(livePrompts: LivePrompts, { caller, status, lazy }: LivePrompt): void {
  if (status !== 'queued' || livePrompts.count(caller.user) <= LOADED_PROMPTS) return;
  unload(lazy.graph);
  unload(lazy.extraData);
}

export function createLivePrompt(
  newPrompt: NewLivePrompt,
  connection: Pick<LivePrompt, 'caller' | 'channel'>,
): LivePrompt {
  return new TrackedPrompt(newPrompt, connection);
}

/**
 * A class, because of its accessors: in an object literal they give each object its own hidden
 * class. Members are assigned one by one: spreading takes a hundred times as long.
 */
class TrackedPrompt implements LivePrompt {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly lazy: LivePrompt['lazy'];
  targets: readonly string[];
  isResumed: boolean;
  caller: LivePrompt['caller'];
  readonly channel: LivePrompt['channel'];
  jobId: string | null = null;
  status: LivePrompt['status'] = undefined;
  hasEvidence = false;
  nodeRuns: LivePrompt['nodeRuns'] = null;
  cancelRequested = false;
  isReleased = false;
  waitReason: LivePrompt['waitReason'] = 'submitting';
  lacksCredential = false;
  startedAtMs: number | null = null;

  constructor(
    newPrompt: NewLivePrompt,
    { caller, channel }: Pick<LivePrompt, 'caller' | 'channel'>,
  ) {
    this.key = newPrompt.key;
    this.promptId = newPrompt.promptId;
    this.number = newPrompt.number;
    this.clientId = newPrompt.clientId;
    this.createdAtMs = newPrompt.createdAtMs;
    this.lazy = {
      graph: createLazyJson(newPrompt.graph, newPrompt.graphJson),
      extraData: createLazyJson(newPrompt.extraData, newPrompt.extraDataJson),
    };
    this.targets = newPrompt.targets;
    this.isResumed = newPrompt.isResumed;
    this.caller = caller;
    this.channel = channel;
  }

  get graph() {
    return readValue(this.lazy.graph);
  }

  set graph(value) {
    setValue(this.lazy.graph, value);
  }

  get extraData() {
    return readValue(this.lazy.extraData);
  }
}
