import { describe, expect, test } from 'vitest';
import { ASSET_CASES } from '../support/golden/golden-assets-differences.ts';
import { replayCase } from '../support/golden/golden-case.ts';

describe('scenarios of a server with assets are answered as recorded, or as docs/differences.md says', () => {
  test.each(ASSET_CASES)(
    '$scenario',
    async (golden) => {
      const { found, expected } = await replayCase(golden);
      expect(found).toEqual(expected);
    },
    30_000,
  );
});
