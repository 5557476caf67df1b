// The floor: 1 KB appended to a file, and synced, one after the other.
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { answer, ready } from './serve.ts';

const file = openSync(join(process.argv[2] ?? '', 'floor'), 'a');
const row = Buffer.alloc(1024, 'x');

answer(({ forMs }: { readonly forMs: number }) => {
  const startedAt = performance.now();
  let rows = 0;
  while (performance.now() - startedAt < forMs) {
    writeSync(file, row);
    fdatasyncSync(file);
    rows++;
  }
  return { rows, ms: performance.now() - startedAt };
});
ready();
