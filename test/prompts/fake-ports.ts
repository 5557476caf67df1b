import { createLazyJson } from '../../src/lib/lazy-json.ts';
import { silentLogger } from '../../src/observability/log.ts';
import type { NewLivePrompt } from '../../src/prompts/live-prompt.ts';
import type { PromptPorts } from '../../src/prompts/ports.ts';
import { DEFAULT_PACE } from '../../src/prompts/submission-pace.ts';
import type { Graph } from '../../src/protocol/v2.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const LOG = silentLogger();

type Given = Partial<Record<keyof PromptPorts, object>>;

/** The ports of prompts. A test gives what it is about. */
export function fakePorts({
  jobs = {},
  records = {},
  frames = {},
  policy = {},
}: Given): PromptPorts {
  const clock = createFakeClock(0);
  return {
    jobs,
    records: { prompts: {}, files: {}, ...records },
    frames: { showsAssetIds: false, log: LOG, ...frames },
    policy: {
      history: { count: 100, bytes: 1e9, graphBytes: 1e6 },
      traits: { isService: false, mayRerunJobs: false },
      durability: 'soon',
      outboxLimit: 10,
      pace: DEFAULT_PACE,
      clock,
      deadlineClock: clock,
      ...policy,
    },
  } as unknown as PromptPorts;
}

/** A new prompt, whose only output is node 1. */
export function fakeNewPrompt(graph: Graph): NewLivePrompt {
  const lazy = { graph: createLazyJson(graph), extraData: createLazyJson({}) };
  const given = { key: 'k', promptId: 'p', number: 1, clientId: 'c', createdAtMs: 0 };
  return { ...given, lazy, targets: ['1'] };
}
