import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { fastTests } from './test/fast-tests.ts';
import { LongestFirst } from './test/longest-first.ts';

/** The tests of what v1 clients rely on, whoever runs the jobs. */
export const CLIENT_SET = [
  'test/clients/*.test.ts',
  'test/graphs/*.test.ts',
  'test/acceptance/acceptance.test.ts',
  'test/acceptance/golden-{assets,http,order,ws}.test.ts',
  'test/acceptance/requirements*.test.ts',
];

const FAST = [...fastTests()];

export default defineConfig({
  test: {
    // For servers in this process, too, and for commands and workers that tests start.
    env: {
      // Node reads the certificates of this file at each start: a quarter of the processor time of a starting server.
      // Only npm calls other machines.
      NODE_EXTRA_CA_CERTS: '',
      HOLDOVER_TEST_NPM_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'] ?? '',
      // Python keeps the code that it compiled, in no source folder: that is half of the processor time of its start.
      PYTHONDONTWRITEBYTECODE: '',
      PYTHONPYCACHEPREFIX: fileURLToPath(new URL('.ci-tools/python-code', import.meta.url)),
    },
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // A second, the default, is too short for a prompt on a busy machine.
    expect: { poll: { timeout: 15_000 } },
    // `.ci/report.mjs` has no more of a failed comparison than its message: 40 characters of each side by default.
    chaiConfig: { truncateThreshold: 1000 },
    // Most of the time is other processes starting and clocks running out, not this one at work.
    maxWorkers: 5,
    // A worker runs file after file: a process for each, with the modules of `src`, takes half a second of processor time.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/processes/run-folder.ts'],
    setupFiles: ['test/support/bytes-equality.ts', 'test/support/processes/dispose-stores.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'fast',
          include: FAST,
          setupFiles: ['test/support/bytes-equality.ts', 'test/support/fast-guard.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'embedded',
          // Tests of real processes may run out of time beside others. `.ci/report.mjs` names those that did.
          retry: 1,
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...FAST],
        },
      },
      {
        extends: true,
        test: {
          name: 'remote',
          retry: 1,
          include: CLIENT_SET,
          // Programs of others run on the embedded engine only; the frames and answers they rely on are compared here.
          exclude: [...configDefaults.exclude, 'test/clients/*.test.ts'],
          // Read in test/support: the server under test stands in front of another one.
          env: { HOLDOVER_TEST_UPSTREAM: 'remote' },
        },
      },
    ],
  },
});
