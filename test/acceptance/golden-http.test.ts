import { describe, expect, test } from 'vitest';
import { CALL_CASES } from '../support/golden/golden-http-differences.ts';
import { replayCase } from '../support/golden/golden-case.ts';

describe('recorded calls are answered as recorded, or as docs/differences.md says', () => {
  test.each(CALL_CASES)(
    '$scenario',
    async (golden) => {
      const { found, expected } = await replayCase(golden);
      expect(found).toEqual(expected);
    },
    30_000,
  );
});
