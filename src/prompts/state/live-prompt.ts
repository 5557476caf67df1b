import type { LivePrompts, LivePrompt, PromptDraft } from '../live-prompts.ts';
import { createLazyJson, unload, setValue, readValue } from '../../lib/lazy-json.ts';

/** Number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;

/** Unloads the graph of a prompt that is far back in the queue. */
export function unloadIfFar(livePrompts: LivePrompts, { caller, status, lazy }: LivePrompt): void {
  if (status !== 'queued' || livePrompts.count(caller.user) <= LOADED_PROMPTS) return;
  unload(lazy.graph);
  unload(lazy.extraData);
}

type PromptContext = Pick<LivePrompt, 'caller' | 'channel'>;

export function createLivePrompt(draft: PromptDraft, context: PromptContext): LivePrompt {
  return new TrackedPrompt(draft, context);
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

  constructor(draft: PromptDraft, { caller, channel }: PromptContext) {
    this.key = draft.key;
    this.promptId = draft.promptId;
    this.number = draft.number;
    this.clientId = draft.clientId;
    this.createdAtMs = draft.createdAtMs;
    this.lazy = {
      graph: createLazyJson(draft.graph, draft.graphJson),
      extraData: createLazyJson(draft.extraData, draft.extraDataJson),
    };
    this.targets = draft.targets;
    this.isResumed = draft.isResumed;
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
