import { describe, expect, test } from 'vitest';
import { SOCKET_CASES } from '../support/golden-differences.ts';
import { playAgain } from '../support/golden-play.ts';

describe('calls and frames of a recorded scenario are answered as recorded, or as docs/differences.md says', () => {
  test.each(SOCKET_CASES)('$scenario', async (play) => {
    const { found, expected, stalls } = await playAgain(play);
    expect(found).toEqual(expected);
    expect(stalls).toEqual([]);
  });
});
