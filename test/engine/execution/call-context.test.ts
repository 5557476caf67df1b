import { expect, test } from 'vitest';
import { NodeCallContext } from '../../../src/engine/execution/call-context.ts';
import { createMemoryMeter } from '../../../src/engine/execution/memory-meter.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const FILE = {
  bytes: Buffer.from('bytes'),
  name: { series: 'a_', start: 'a_', end: '_.txt' },
  subfolder: '',
  contentType: 'text/plain',
  temp: false,
} as const;

/** A context whose requests to the main thread the test answers. */
function contextWith(ask: () => Promise<unknown>, spoolDir: string) {
  return new NodeCallContext(
    '1',
    {},
    {
      files: new Map(),
      stopFlag: new Int32Array(1),
      meter: createMemoryMeter(Infinity),
      textBudget: { left: 0 },
      metadata: { promptText: null, extraPngInfo: null },
      ask: ask as never,
      post() {},
      spoolDir,
    },
  );
}

test('an output that cannot be written fails the node, and says why without a path', async () => {
  const spoolDir = await tempFolder('spool');
  const full = Object.assign(new Error('/secret/path'), { code: 'ENOSPC' });
  await expect(contextWith(() => Promise.reject(full), spoolDir).save(FILE)).rejects.toMatchObject({
    exceptionType: 'OSError',
    message: 'a_*_.txt could not be written: ENOSPC',
  });
  const noFolder = contextWith(async () => ({ id: 'saved' }), '/secret/path');
  await expect(noFolder.save(FILE)).rejects.toMatchObject({
    exceptionType: 'OSError',
    message: 'a_*_.txt could not be written: ENOENT',
  });
});
