import {
  type Case,
  FIRST,
  TENSOR,
  badInput,
  failureOf,
  expectedDifferences,
  saidToo,
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
  {
    scenario: 'async-nodes',
    expectedDifferences: [
      expectedDifferences(
        'one-at-a-time',
        'socket a',
        ...saidToo('PS{1:f 1/1,2:f 1/1}', 'PS{1:f 1/1,2:f 1/1,4:r 0/1}', 'X(4)', 'executed(4)'),
        ...saidToo('PS{1:f 1/1,2:f 1/1,4:f 1/1}', 'PS{1:f 1/1,2:f 1/1,3:r 0/1,4:f 1/1}'),
        ...saidToo('PS{1:f 1/1,2:f 1/1,3:f 1/1,4:f 1/1}'),
        ...saidToo('PS{1:f 1/1,2:f 1/1,3:f 1/1,4:f 1/1,5:r 0/1}'),
        '- PS{1:f 1/1,2:r 0/1,3:r 0/1}',
        '- PS{1:f 1/1,2:r 0/1,3:f 1/1}',
        '- PS{1:f 1/1,2:r 0/1,3:f 1/1,5:r 0/1}',
        '- PS{1:f 1/1,2:r 0/1,3:f 1/1,5:f 1/1}',
        '- PS{1:f 1/1,2:f 1/1,3:f 1/1,5:f 1/1}',
        '- PS{1:f 1/1,2:f 1/1,3:f 1/1,4:r 0/1,5:f 1/1}',
        '- X(4)',
        '- executed(4)',
      ),
    ],
  },
  {
    scenario: 'blocked',
    expectedDifferences: [
      expectedDifferences('one-at-a-time', 'socket a', '- execution_error'),
      ...[1, 2].flatMap((n) => {
        const id = FIRST.replace(/1$/, `${n}`);
        const history = `${n * 2 - 1} GET /history/${id}`;
        return [
          expectedDifferences('one-at-a-time', 'socket a', '+ executed(3)'),
          expectedDifferences(
            'one-at-a-time',
            history,
            `${id}.meta.3 {"node_id":"3","display_node":"3","parent_node":null,"real_node_id":"3"}`,
            `${id}.outputs.3 {"images":[{"filename":"b_0000${n}_.png","subfolder":"","type":"output"}]}`,
          ),
        ];
      }),
    ],
  },
  {
    scenario: 'expansion',
    // Its steps are those of node 2 here, of `2.0.0.2` there.
    tolerances: { anyTicks: true },
    expectedDifferences: [
      expectedDifferences(
        'one-at-a-time',
        'socket a',
        ...saidToo('PS{1:f 1/1,2:f 2/2}', 'PS{1:f 1/1,2:f 2/2,3:r 0/1}'),
        ...saidToo('PS{1:f 1/1,2:f 2/2,3:f 1/1}'),
        '- PS{1:f 1/1,2:r 0/1,2.0.0.1:r 0/1}',
        '- X(2.0.0.1)',
        '- PS{1:f 1/1,2:r 0/1,2.0.0.1:f 1/1}',
        '- PS{1:f 1/1,2:r 0/1,2.0.0.1:f 1/1,2.0.0.2:r 0/1}',
        '- X(2.0.0.2)',
        '- PS{1:f 1/1,2:r 0/1,2.0.0.1:f 1/1,2.0.0.2:f 2/2}',
        '- PS{1:f 1/1,2:f 1/1,2.0.0.1:f 1/1,2.0.0.2:f 2/2}',
        '- PS{1:f 1/1,2:f 1/1,3:r 0/1,2.0.0.1:f 1/1,2.0.0.2:f 2/2}',
        '- PS{1:f 1/1,2:f 1/1,3:f 1/1,2.0.0.1:f 1/1,2.0.0.2:f 2/2}',
      ),
    ],
  },
  {
    scenario: 'logs',
    tolerances: { floatingStatus: true },
    expectedDifferences: [
      expectedDifferences(
        'logs',
        'socket a',
        // Of the first line: the original logs that of a call that fails.
        'logs: data.size {"cols":80,"rows":24}',
        'logs: data.entries[0].m "got prompt\\n"',
        'logs: data.entries[0].m "Prompt executed in …\\n"',
      ),
      badInput('1 PATCH /internal/logs/subscribe', 'missing_key'),
    ],
  },
  // The original refuses the ids of this scenario, and runs nothing.
  { scenario: 'duplicate-prompt-id', tolerances: { anyTicks: true, refused: [1, 2, 4, 5] } },
  // The original fails on the first prompt.
  { scenario: 'extra-data-null', tolerances: { refused: [0] } },
];
