import { defineConfig } from 'vitest/config';

/** The arguments after `--` are for the test. */
const flags = process.argv.includes('--') ? process.argv.slice(process.argv.indexOf('--') + 1) : [];

/** The long one alone: `npm test` does not find it. */
export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['long.ts'],
    disableConsoleIntercept: true,
    env: { SOAK_FLAGS: JSON.stringify(flags) },
  },
});
