import { describe } from 'vitest';
import { CALL_CASES } from '../support/golden/golden-http-differences.ts';
import { testCases } from '../support/golden/golden-case.ts';

describe('recorded calls are answered as recorded, or as docs/differences.md says', () =>
  testCases(CALL_CASES));
