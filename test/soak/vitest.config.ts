import { defineConfig } from 'vitest/config';

/** The long one alone: `npm test` does not find it. */
export default defineConfig({
  test: { root: import.meta.dirname, include: ['long.ts'], disableConsoleIntercept: true },
});
