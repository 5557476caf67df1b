import { silentLogger } from '../../../src/observability/log.ts';
import { PROMPT_DURABILITY } from '../../../src/prompts/durability.ts';

/** Options of a follower that most tests say nothing about. */
export const FOLLOWER_OPTIONS = {
  history: { count: 100, bytes: 1e9, graphBytes: 1e6 },
  mayLoseJobs: false,
  mayRerunJobs: false,
  durability: PROMPT_DURABILITY.ledger,
  replaceLostJob: async () => 'final',
  log: silentLogger(),
} as const;
