/** Files that take longest in a whole run, by their paths in the project; most of their time is other processes. */
export const LONG_TESTS: readonly string[] = [
  'test/replication/replicas.test.ts',
  'test/browser/first-run.test.ts',
  'test/faults/resubmission.test.ts',
  'test/crash/crash.test.ts',
  'test/faults/crash.test.ts',
  'test/replication/takeover.test.ts',
  'test/restart/clock.test.ts',
  'test/ledger/durability.test.ts',
  'test/acceptance/requirements-frames.test.ts',
  'test/upstreams/distributed/processes.test.ts',
  'test/crowd/many-clients.test.ts',
  'test/graphs/frames.test.ts',
  'test/trace/cli.test.ts',
  'test/models/process.test.ts',
  'test/restart/ledger-lost.test.ts',
];
