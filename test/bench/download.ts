import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Bench } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { type Sample, interleave, ratioRow, rounded } from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';
import { wrk } from './wrk.ts';

const MB = 1e6;
const BYTES = 100 * MB;
/** Reads after the first: the peak of many of them is that of one. */
const FLAT_MB = 80;

/** A large file streamed to one client, against nginx with its default buffering. */
export const download: Bench = {
  name: 'download',
  needs: ['nginx', 'wrk'],
  async run({ workDir, rounds, keep }) {
    const file = join(workDir, 'download.bin');
    await writeRandom(file);
    const service = await keep(startOurs('v2-service', { side: 'load' }));
    const content = `location = /api/v2/assets/asset-1/content { default_type application/octet-stream; alias ${file}; }`;
    const rest = `location / { proxy_pass ${service.url}; proxy_http_version 1.1; }`;
    const origin = await keep(startNginx({ workDir, side: 'load', server: content + rest }));
    const passed = `location / { proxy_pass ${origin.url}; proxy_http_version 1.1; }`;
    const nginx = await keep(startNginx({ workDir, side: 'subject', server: passed }));
    const args = ['--upstream', origin.url, '--object-info', 'embedded'];
    const holdover = await keep(startHoldover({ workDir, args }));
    await uploadOne(holdover);
    const load = (program: Program, path: string) =>
      bytesPerSecond(program, { workDir, url: program.url + path });
    const contestants = {
      view: () => load(holdover, '/view?filename=bench.bin&type=input'),
      raw: () => load(holdover, '/api/v2/assets/asset-1/content'),
      nginx: () => load(nginx, '/api/v2/assets/asset-1/content'),
    };
    await interleave(1, contestants);
    const baseBytes = holdover.rssBytes();
    holdover.resetPeak();
    const samples = await interleave(rounds, contestants);
    const against = { name: 'nginx, buffered', samples: samples.nginx };
    const common = { bench: 'download', unit: 'MB/s', against, cpuUnit: 's/GB' } as const;
    const grownMb = (holdover.peakRssBytes() - baseBytes) / MB;
    return [
      ratioRow({
        ...common,
        figure: '100 MB, GET /view',
        samples: samples.view,
        target: { kind: 'at least', ratio: 0.7 },
      }),
      ratioRow({ ...common, figure: '100 MB, /api/v2 passed through', samples: samples.raw }),
      {
        bench: 'download',
        figure: 'RSS above that after the first',
        unit: 'MB',
        holdover: grownMb,
        reached: `${rounded(grownMb)} MB`,
        target: `≤ ${FLAT_MB} MB`,
        holds: grownMb <= FLAT_MB,
      },
    ];
  },
};

async function bytesPerSecond(
  program: Program,
  { workDir, url }: { readonly workDir: string; readonly url: string },
): Promise<Sample> {
  const sample = await wrk(program, {
    workDir,
    url,
    connections: 1,
    seconds: 2,
    timeoutSeconds: 60,
  });
  const { bytesPerSecond: rate = 0, cpuNs = 0, bytes = 1 } = sample.more ?? {};
  return { value: rate / MB, cpuUs: cpuNs / bytes };
}

async function uploadOne(holdover: Program): Promise<void> {
  const form = new FormData();
  form.set('image', new Blob(['0123456789']), 'bench.bin');
  const answer = await fetch(`${holdover.url}/upload/image`, { method: 'POST', body: form });
  if (!answer.ok) throw new Error(`the upload was answered with ${answer.status}`);
}

/** A file of 100 MB. */
export async function writeRandom(path: string): Promise<void> {
  const file = createWriteStream(path);
  const chunk = randomBytes(MB);
  for (let size = 0; size < BYTES; size += MB) if (!file.write(chunk)) await once(file, 'drain');
  file.end();
  await once(file, 'close');
}
