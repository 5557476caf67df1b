import {
  type Case,
  FIRST,
  JSON_TYPE,
  TENSOR,
  badInput,
  badUpload,
  elsewhereOnly,
  failureOf,
  expectedDifferences,
  saidToo,
} from './golden-differences.ts';

/** The frames of a whole run of EmptyImage, ImageInvert and SaveImage on its own client's socket. */
const WHOLE_RUN = saidToo(
  'S(1)',
  'S(1)',
  'execution_start',
  'execution_cached[]',
  'PS{1:r 0/1}',
  'X(1)',
  'PS{1:f 1/1}',
  'PS{1:f 1/1,2:r 0/1}',
  'X(2)',
  'PS{1:f 1/1,2:f 1/1}',
  'PS{1:f 1/1,2:f 1/1,3:r 0/1}',
  'X(3)',
  'executed(3)',
  'PS{1:f 1/1,2:f 1/1,3:f 1/1}',
  'execution_success',
  'S(0)',
  'X(null)',
);

/** Scenarios with sockets in which one thing happens after the other. */
export const SOCKET_CASES: readonly Case[] = [
  {
    scenario: 'connect',
    expectedDifferences: [
      expectedDifferences('no-deflate', 'socket deflate', 'extensions: none'),
      expectedDifferences(
        'wording',
        '0 GET /ws?clientId=x',
        'body "This path speaks WebSocket: the request has no upgrade header."',
      ),
    ],
  },
  { scenario: 'feature-flags' },
  { scenario: 'ws-limits' },
  { scenario: 'normal-run' },
  { scenario: 'cached-rerun' },
  { scenario: 'cache-back-and-forth' },
  {
    scenario: 'identical-nodes',
    expectedDifferences: [
      expectedDifferences(
        'identical-node-meta',
        `1 GET /history/${FIRST}`,
        ...['3', '4'].flatMap((id) =>
          ['node_id', 'display_node', 'real_node_id'].map(
            (key) => `${FIRST}.meta.${id}.${key} "${id}"`,
          ),
        ),
      ),
      expectedDifferences(
        'turn-order',
        'socket a',
        ...saidToo('PS{1:f 1/1,3:r 0/1}', 'X(3)', 'executed(3)', 'PS{1:f 1/1,3:f 1/1}'),
        '- PS{1:f 1/1,5:r 0/1}',
        '- X(5)',
        '- PS{1:f 1/1,5:f 1/1}',
        '- executed(3)',
      ),
    ],
  },
  { scenario: 'text-frame' },
  {
    scenario: 'fail-corrupt-file',
    expectedDifferences: [
      ...[1, 2].map(() =>
        expectedDifferences(
          'host-paths',
          'socket a',
          `execution_error: data.exception_message "cannot identify image file 'corrupt.png'\\n"`,
        ),
      ),
      expectedDifferences(
        'host-paths',
        `1 GET /history/${FIRST}`,
        `${failureOf(FIRST)}.exception_message "cannot identify image file 'corrupt.png'\\n"`,
      ),
    ],
  },
  {
    scenario: 'fail-test-node',
    expectedDifferences: [
      ...[1, 2].map(() =>
        expectedDifferences(
          'current-inputs',
          'socket a',
          `execution_error: data.current_inputs.image[0] ${TENSOR}`,
        ),
      ),
      expectedDifferences(
        'current-inputs',
        `1 GET /history/${FIRST}`,
        `${failureOf(FIRST)}.current_inputs.image[0] ${TENSOR}`,
      ),
    ],
  },
  { scenario: 'interrupt-core' },
  {
    scenario: 'interrupt-running',
    tolerances: { anyTicks: true },
    expectedDifferences: [badInput('8 POST /interrupt', 'invalid_request')],
  },
  { scenario: 'save-image-websocket' },
  { scenario: 'animated' },
  {
    scenario: 'free-memory',
    expectedDifferences: [
      ...elsewhereOnly(
        'free',
        'socket a',
        '+ execution_cached["1","2","3"]',
        '- execution_cached[]',
        '- PS{1:r 0/1}',
        '- X(1)',
        '- PS{1:f 1/1}',
        '- PS{1:f 1/1,2:r 0/1}',
        '- X(2)',
        '- PS{1:f 1/1,2:f 1/1}',
        '- PS{1:f 1/1,2:f 1/1,3:r 0/1}',
        '- X(3)',
        'executed(3): data.output.images[0].filename "golden_00001_.png"',
        '+ PS{3:f 1/1}',
        '- PS{1:f 1/1,2:f 1/1,3:f 1/1}',
      ),
      badInput('3 POST /free'),
    ],
  },
  { scenario: 'two-sockets' },
  {
    scenario: 'same-id-sockets',
    expectedDifferences: [
      expectedDifferences('shared-ids', 'socket first', ...WHOLE_RUN),
      expectedDifferences('shared-ids', 'socket second', ...WHOLE_RUN),
    ],
  },
  {
    scenario: 'submit-options',
    tolerances: { refused: [1, 2] },
    expectedDifferences: [badInput('7 POST /prompt', 'invalid_prompt')],
  },
  {
    scenario: 'history',
    expectedDifferences: [
      badInput('12 GET /history?max_items=x', 'invalid_request'),
      badInput('20 POST /history'),
      expectedDifferences(
        'newer-routes',
        '25 GET /api/history_v2',
        'status 200',
        JSON_TYPE,
        'body {"history": []}',
      ),
    ],
  },
  {
    scenario: 'uploads',
    expectedDifferences: [
      badUpload('12 POST /upload/image'),
      badUpload('20 POST /upload/image'),
      badUpload('23 POST /upload/image'),
      // Of these the original sends the status alone.
      ...[17, 18, 19, 22, 24, 25].map((n) =>
        expectedDifferences(
          'bad-input',
          `${n} POST /upload/image`,
          'body error invalid_upload',
          JSON_TYPE,
        ),
      ),
      ...[2, 3].map((n) =>
        expectedDifferences(
          'preview-names',
          'socket a',
          `executed(2): data.output.images[0].filename "ComfyUI_temp_${n}_00001_.png"`,
        ),
      ),
    ],
  },
  {
    scenario: 'validation-errors',
    expectedDifferences: [
      expectedDifferences(
        'current-inputs',
        'socket a',
        ...['prompt', 'extra_pnginfo'].map(
          (name) => `execution_error: data.current_inputs.${name} absent`,
        ),
      ),
      expectedDifferences(
        'wording',
        'socket a',
        `execution_error: data.exception_message "images: expected an image, got the text \\"x\\"\\n"`,
        'execution_error: data.exception_type "TypeError"',
      ),
      expectedDifferences(
        'unknown-class',
        '7 POST /prompt',
        'error.type "missing_node_type"',
        `error.message "Node 'KSamplerSelect' not found. The custom node may not be installed."`,
        `error.details "Node ID '#1'"`,
        'error.extra_info.node_id "1"',
        'error.extra_info.class_type "KSamplerSelect"',
        'error.extra_info.node_title "KSamplerSelect"',
        'node_errors.1 absent',
      ),
      badInput('29 POST /prompt', 'invalid_prompt'),
      badInput('30 POST /prompt', 'prompt_no_outputs'),
      badInput('31 POST /prompt', 'invalid_prompt'),
      badInput('32 POST /prompt'),
      badInput('33 POST /prompt'),
      badInput('34 POST /prompt', 'invalid_prompt'),
      expectedDifferences(
        'current-inputs',
        '42 GET /history',
        ...['prompt', 'extra_pnginfo'].map(
          (name) => `${failureOf(FIRST)}.current_inputs.${name} absent`,
        ),
      ),
      expectedDifferences(
        'wording',
        '42 GET /history',
        `${failureOf(FIRST)}.exception_message "images: expected an image, got the text \\"x\\"\\n"`,
        `${failureOf(FIRST)}.exception_type "TypeError"`,
      ),
    ],
  },
];
