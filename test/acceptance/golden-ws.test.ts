import { describe } from 'vitest';
import { RUN_CASES } from '../support/golden/golden-run-differences.ts';
import { SOCKET_CASES } from '../support/golden/golden-ws-differences.ts';
import { testedUpstream } from '../support/upstreams/tested-upstream.ts';
import { testCases } from '../support/golden/golden-case.ts';

/** In the stack a run has the results of an earlier one only where the same process ran both. */
const CASES = [...SOCKET_CASES, ...RUN_CASES].filter(
  ({ scenario }) => testedUpstream() !== 'stack' || scenario !== 'free-memory',
);

describe('calls and frames of a recorded scenario are answered as recorded, or as docs/differences.md says', () =>
  testCases(CASES));
