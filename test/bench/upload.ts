import { type Bench, running } from './bench.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import type { Sent, Upload } from './programs/uploader.ts';

const GB = 1e9;

/** A large file received, hashed and sent on, against nginx with its default buffering. */
export const upload: Bench = {
  name: 'upload',
  needs: ['nginx'],
  program: 'nginx',
  async prepare(context) {
    const { workDir, keep } = context;
    const service = await keep(startOurs('file-service'));
    const uploader = await keep(startOurs('uploader'));
    const server = `location / { proxy_pass ${service.url}; proxy_http_version 1.1; }`;
    const args = ['--upstream', service.url, '--object-info', 'embedded'];
    return running(context, [...args, '--max-upload-size', '2000'], {
      startProgram: () => startNginx({ workDir, side: 'subject', server }),
      async measure(program) {
        program.resetPeak();
        const cpuBefore = program.cpuNs();
        const ms = await sendFile(uploader, program, GB);
        return {
          'POST /upload/image of 1 GB, s': ms / 1000,
          'the same, processor time, s': (program.cpuNs() - cpuBefore) / 1e9,
          'the same, highest resident memory, MB': program.peakRssBytes() / 1e6,
        };
      },
    });
  },
};

/** Milliseconds until the answer. */
export async function sendFile(uploader: Program, to: Program, bytes: number): Promise<number> {
  const { ms, status } = await uploader.ask<Sent>({ url: to.url, bytes } satisfies Upload);
  if (status >= 300) throw new Error(`the upload was answered with ${status}`);
  return ms;
}
