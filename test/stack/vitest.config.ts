import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import base, { CLIENT_SET } from '../../vitest.config.ts';

const { projects: _projects, ...options } = base.test ?? {};

/** The tests of clients and faults, through the services of deploy/compose.yaml. */
export default defineConfig({
  test: {
    ...options,
    root: fileURLToPath(new URL('../..', import.meta.url)),
    env: { ...options.env, HOLDOVER_TEST_UPSTREAM: 'stack' },
    // Each worker has eight processes and more.
    maxWorkers: 2,
    include: [...CLIENT_SET, 'test/faults/*.test.ts'],
    // About the descriptors, the memory or the data folder of one process.
    exclude: ['test/faults/{data-dir-gone,full-disk,resources}.test.ts'],
  },
});
