import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { toJobError } from '../../../src/engine/jobs/job-error.ts';
import { NodeFailure } from '../../../src/nodes/node.ts';

const NODE = { node_id: '1', class_type: 'LoadImage' };

test('an error of the system does not say where the host keeps its files', async () => {
  const gone = await readFile('/host/canary/blobs/ab/abc').catch((error: unknown) => error);
  const error = toJobError(gone, NODE);
  expect(error).toMatchObject({
    message: 'the engine could not do this: ENOENT',
    x_exception_type: 'RuntimeError',
  });
  expect(JSON.stringify(error)).not.toContain('canary');
});

test("a node's own words are reported as they are", () => {
  const said = new NodeFailure('FileNotFoundError', 'no such thing: a/b.png');
  expect(toJobError(said, NODE).message).toBe('no such thing: a/b.png');
});

test('a message whose line looks like a frame of many folders is reported at once', () => {
  const said = new NodeFailure('Exception', `../\n    at ${'/a'.repeat(200_000)}`);
  const beginMs = performance.now();
  expect(toJobError(said, NODE).traceback).toContain('failure.test.ts');
  expect(performance.now() - beginMs).toBeLessThan(1000);
});
