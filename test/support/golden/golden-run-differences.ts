import {
  type Case,
  FIRST,
  TENSOR,
  badInput,
  failureOf,
  expectedDifferences,
} from './golden-differences.ts';

/** Taken out of the queue: each gets an end of its own, where the original says one count for all. */
const CLEARED = ['3', '5', '2', '4', '6'].map((n) => FIRST.replace(/1$/, n));

/** Scenarios about the recorder's test nodes, and about several prompts at once. */
export const RUN_CASES: readonly Case[] = [
  { scenario: 'preview-type1' },
  { scenario: 'preview-type4' },
  { scenario: 'sink-without-ui' },
  {
    scenario: 'two-queued',
    tolerances: { floatingStatus: true },
    expectedDifferences: [
      expectedDifferences(
        'preview-names',
        'socket a',
        'executed(3): data.output.images[0].filename "ComfyUI_temp_2_00001_.png"',
      ),
      expectedDifferences(
        'preview-names',
        '3 GET /history',
        `${FIRST.replace(/1$/, '2')}.outputs.3.images[0].filename "ComfyUI_temp_2_00001_.png"`,
      ),
    ],
  },
  // The clock decides which socket receives which step; golden-order.test.ts counts them.
  { scenario: 'reconnect', tolerances: { anyTicks: true } },
  {
    scenario: 'no-client-id',
    tolerances: { anyTicks: true },
    expectedDifferences: [
      expectedDifferences(
        'current-inputs',
        '5 GET /history',
        `${failureOf(FIRST.replace(/1$/, '2'))}.current_inputs.image[0] ${TENSOR}`,
      ),
    ],
  },
  {
    scenario: 'queue-delete-clear',
    tolerances: { anyTicks: true, byPrompt: true },
    expectedDifferences: [
      ...['a', 'other'].map((label) =>
        expectedDifferences(
          'cancelled-before-start',
          `socket ${label}`,
          ...['+ S(3)', '+ S(2)', '- S(1)'].map((s) => `status: ${s}`),
        ),
      ),
      expectedDifferences(
        'cancelled-before-start',
        'socket a',
        ...CLEARED.flatMap((id) => [`${id}: + execution_interrupted`, `${id}: + X(null)`]),
      ),
      badInput('16 POST /queue'),
      expectedDifferences(
        'cancelled-before-start',
        '18 GET /history',
        ...CLEARED.map((id) => `${id} {…}`),
      ),
    ],
  },
  // The original refuses the ids of this scenario, and runs nothing.
  { scenario: 'duplicate-prompt-id', tolerances: { refused: [1, 2, 4, 5] } },
  // The original fails on the first prompt.
  { scenario: 'extra-data-null', tolerances: { refused: [0] } },
];
