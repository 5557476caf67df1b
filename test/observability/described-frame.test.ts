import { expect, test } from 'vitest';
import { describeFrame } from '../../src/observability/described-frame.ts';
import {
  previewFrame,
  previewWithMetadataFrame,
  textFrame,
} from '../../src/protocol/binary-frames.ts';

const JPEG = Buffer.from('ffd8ff00', 'hex');
const METADATA = {
  node_id: '3',
  prompt_id: 'p',
  display_node_id: '3',
  parent_node_id: null,
  real_node_id: '3',
  image_type: 'image/png',
} as const;

test.each([
  ['{"type":"executing","data":{"node":"1","prompt_id":"p"}}', 'executing', 'p', '1'],
  ['{"type":5,"data":[]}', undefined, undefined, undefined],
  ['no JSON', undefined, undefined, undefined],
  [Buffer.from([0, 0]), undefined, undefined, undefined],
  [Buffer.from([0, 0, 0, 9, 1]), 'binary 9', undefined, undefined],
  [previewFrame(JPEG, 'image/jpeg'), 'binary 1', undefined, undefined],
  [textFrame('7', 'hé'), 'binary 3', undefined, '7'],
  [previewWithMetadataFrame(JPEG, METADATA), 'binary 4', 'p', '3'],
])('%j is of its type, prompt and node', (payload, type, promptId, nodeId) => {
  const described = describeFrame(payload);
  expect(described).toMatchObject({ isBinary: typeof payload !== 'string', type });
  expect([described.promptId, described.nodeId]).toEqual([promptId, nodeId]);
  expect(described.bytes).toBe(Buffer.byteLength(payload));
});

test('the picture or the text of a frame starts where it says', () => {
  const withMetadata = previewWithMetadataFrame(JPEG, METADATA);
  const { picture } = describeFrame(withMetadata);
  expect(picture?.format).toBe('image/png');
  expect(withMetadata.subarray(picture?.start)).toEqual(JPEG);
  expect(describeFrame(previewFrame(JPEG, 'image/jpeg')).picture).toEqual({
    format: 'image/jpeg',
    start: 8,
  });
  const text = textFrame('7', 'hé');
  expect(text.toString('utf8', describeFrame(text).textStart)).toBe('hé');
});

test('a length that is longer than the frame is no error', () => {
  const frame = Buffer.from([0, 0, 0, 4, 255, 255, 255, 255, 123]);
  expect(describeFrame(frame)).toMatchObject({ promptId: undefined, bytes: 9 });
});
