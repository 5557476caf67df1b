/**
 * Files that take longest in a whole run, the longest first, by their paths in the project; most of their time is
 * other processes.
 */
export const LONG_TESTS: readonly string[] = [
  'test/pages/browser.test.ts',
  'test/browser/first-run.test.ts',
  'test/container/dockerfile.test.ts',
  'test/crash/crash.test.ts',
  'test/deploy/stack.test.ts',
  'test/cli/migrate-files.test.ts',
  'test/replication/replicas.test.ts',
  'test/replication/takeover.test.ts',
  'test/crowd/many-clients.test.ts',
  'test/browser/official.test.ts',
  'test/faults/queue-full.test.ts',
  'test/upstreams/distributed/processes.test.ts',
  'test/faults/resources.test.ts',
  'test/acceptance/requirements-frames.test.ts',
  'test/sdk/python.test.ts',
  'test/trace/trace.test.ts',
  'test/proxy/comfy-api-proxy.test.ts',
  'test/upstreams/distributed/queue.test.ts',
  'test/cli/backup/backup.test.ts',
  'test/bucket/servers.test.ts',
  'test/faults/submit.test.ts',
  'test/models/process.test.ts',
  'test/remote/files.test.ts',
  'test/faults/crash.test.ts',
  'test/faults/resubmission.test.ts',
  'test/restart/clock.test.ts',
  'test/contract/v1.test.ts',
];
