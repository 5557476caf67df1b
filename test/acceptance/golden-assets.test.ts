import { describe } from 'vitest';
import { ASSET_CASES } from '../support/golden/golden-assets-differences.ts';
import { testCases } from '../support/golden/golden-case.ts';

describe('scenarios of a server with assets are answered as recorded, or as docs/differences.md says', () =>
  testCases(ASSET_CASES));
