import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bench, running } from './bench.ts';
import { startNginx } from './nginx.ts';
import { startOurs } from './program.ts';
import type { Called, Calls } from './programs/caller.ts';
import { sendFile } from './upload.ts';

const MB = 1e6;
const BYTES = 100 * MB;
const PATH = '/view?filename=bench.bin&type=input';

/** `GET /view`, embedded, against nginx with the file on its disk. */
export const download: Bench = {
  name: 'download',
  needs: ['nginx'],
  program: 'nginx',
  async prepare(context) {
    const { workDir, keep } = context;
    const uploader = await keep(startOurs('uploader'));
    const caller = await keep(startOurs('caller'));
    const file = join(workDir, 'download.bin');
    writeFileSync(file, randomBytes(BYTES));
    const server = `location = /view { alias ${file}; }`;
    return running(context, ['--max-upload-size', '200'], {
      startProgram: () => startNginx({ workDir, side: 'subject', server }),
      fill: (holdover) => sendFile(uploader, holdover, BYTES),
      async measure(program) {
        const cpuBefore = program.cpuNs();
        const call = { method: 'GET', path: PATH, connections: 1, seconds: 3 } as const;
        const { bytes, ms } = await caller.ask<Called>({
          url: program.url,
          ...call,
        } satisfies Calls);
        return {
          'GET /view of 100 MB, MB/s': bytes / MB / (ms / 1000),
          'the same, processor time, s/GB': (program.cpuNs() - cpuBefore) / bytes,
        };
      },
    });
  },
};
