import { silentLogger } from '../../../src/observability/log.ts';

/** Options of a follower that most tests say nothing about. */
export const FOLLOWER_OPTIONS = {
  history: { count: 100, bytes: 1e9, graphBytes: 1e6 },
  traits: { isService: false, mayRerunJobs: false },
  showsAssetIds: false,
  durability: 'soon' as const,
  replaceLostJob: async () => 'final',
  log: silentLogger(),
} as const;
