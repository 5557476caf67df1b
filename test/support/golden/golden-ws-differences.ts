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
  {
    scenario: 'cached-rerun',
    expectedDifferences: [
      expectedDifferences(
        'turn-order',
        'socket a',
        ...saidToo('executed(3)', 'PS{3:f 1/1}', 'PS{3:f 1/1,4:r 0/1}'),
        '- PS{4:r 0/1}',
        '- PS{4:f 1/1}',
        '- executed(3)',
      ),
    ],
  },
  { scenario: 'cache-back-and-forth' },
  {
    scenario: 'identical-nodes',
    expectedDifferences: [
      expectedDifferences(
        'identical-node-meta',
        `1 GET /history/${FIRST}`,
        ...['4', '5'].flatMap((id) =>
          ['node_id', 'display_node', 'real_node_id'].map(
            (key) => `${FIRST}.meta.${id}.${key} "${id}"`,
          ),
        ),
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
  {
    scenario: 'interrupt-core',
    expectedDifferences: [
      expectedDifferences(
        'interrupt-inside',
        'socket a',
        '- PS{1:f 1/1,2:f 1/1}',
        '- PS{1:f 1/1,2:f 1/1,3:r 0/1}',
        '- X(3)',
        'execution_interrupted: data.node_id "2"',
        'execution_interrupted: data.executed ["1"]',
      ),
      expectedDifferences(
        'interrupt-inside',
        `2 GET /history/${FIRST}`,
        `${failureOf(FIRST)}.node_id "2"`,
        `${failureOf(FIRST)}.executed ["1"]`,
      ),
    ],
  },
  {
    scenario: 'interrupt-running',
    tolerances: { anyTicks: true },
    expectedDifferences: [badInput('8 POST /interrupt', 'invalid_request')],
  },
  { scenario: 'save-image-websocket' },
  {
    scenario: 'animated',
    expectedDifferences: [
      expectedDifferences(
        'turn-order',
        'socket a',
        ...saidToo('PS{1:f 1/1,2:r 0/1}', 'X(2)', 'executed(2)', 'PS{1:f 1/1,2:f 1/1}'),
        '+ PS{1:f 1/1,2:f 1/1,3:r 0/1}',
        '- PS{1:f 1/1,3:r 0/1}',
        '- PS{1:f 1/1,3:f 1/1}',
        '- PS{1:f 1/1,2:r 0/1,3:f 1/1}',
        '- X(2)',
        '- executed(2)',
      ),
      expectedDifferences(
        'turn-order',
        '4 GET /internal/files/output',
        '[0] "animw_00001_.webp"',
        '[1] "anim_00001_.png"',
      ),
    ],
  },
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
      expectedDifferences(
        'newer-routes',
        '26 GET /api/jobs',
        'status 200',
        JSON_TYPE,
        'body {"jobs": [], "pagination": {"offset": 0, "limit": 200, "total": 0, "has_more": false}}',
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
        ...['image1', 'image2'].map(
          (name) => `execution_error: data.current_inputs.${name}[0] ${TENSOR}`,
        ),
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
        'error.type "invalid_prompt"',
        'error.message "Cannot execute because node KSamplerSelect does not exist. The embedded engine has no class KSamplerSelect; a remote v2 upstream that has it can run this workflow."',
        `error.details "Node ID '#1'"`,
        'node_errors.1 absent',
      ),
      expectedDifferences(
        'unknown-class',
        '21 POST /prompt',
        'error.message "Cannot execute because node NoSuchNode does not exist. The embedded engine has no class NoSuchNode; a remote v2 upstream that has it can run this workflow."',
      ),
      badInput('29 POST /prompt', 'invalid_prompt'),
      badInput('31 POST /prompt', 'invalid_prompt'),
      badInput('32 POST /prompt'),
      badInput('33 POST /prompt'),
      badInput('34 POST /prompt', 'invalid_prompt'),
      expectedDifferences(
        'wording',
        '39 POST /prompt',
        'error.details "Dependency cycle: 2 -> 1 -> 2"',
      ),
      expectedDifferences(
        'current-inputs',
        '42 GET /history',
        ...['image1', 'image2'].map(
          (name) => `${failureOf(FIRST)}.current_inputs.${name}[0] ${TENSOR}`,
        ),
        ...['prompt', 'extra_pnginfo'].map(
          (name) => `${failureOf(FIRST.replace(/1$/, '2'))}.current_inputs.${name} absent`,
        ),
      ),
      expectedDifferences(
        'wording',
        '42 GET /history',
        `${failureOf(FIRST.replace(/1$/, '2'))}.exception_message "images: expected an image, got the text \\"x\\"\\n"`,
        `${failureOf(FIRST.replace(/1$/, '2'))}.exception_type "TypeError"`,
      ),
    ],
  },
];
