import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

const { projects: _projects, ...options } = base.test ?? {};

/** The tests over one Redis, over a cluster of three nodes; and those that only a cluster has. */
export default defineConfig({
  test: {
    ...options,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...options.env, HOLDOVER_TEST_REDIS: 'cluster' },
    globalSetup: ['test/support/processes/run-folder.ts'],
    include: [
      'test/cluster/failover.ts',
      'test/cluster/stack-failover.ts',
      'test/cluster/stack-moved-slots.ts',
      'test/deploy/stack.test.ts',
      'test/replication/{cluster,replicas,takeover,embedded-engine}.test.ts',
      'test/upstreams/distributed/*.test.ts',
      'test/restart/redis.test.ts',
      'test/crash/crash.test.ts',
      'test/cli/{migrate,migrate-cluster}.test.ts',
      'test/ledger/{cluster-open,redis-cluster}.test.ts',
    ],
  },
});
