import { expect } from 'vitest';

/** Set up for each test: `toEqual` compares megabytes at once, not byte by byte, which takes seconds. */
function areBytesEqual(a: unknown, b: unknown): boolean | undefined {
  if (!(a instanceof Uint8Array && b instanceof Uint8Array)) return undefined;
  return a.constructor === b.constructor ? Buffer.compare(a, b) === 0 : undefined;
}

expect.addEqualityTesters([areBytesEqual]);
