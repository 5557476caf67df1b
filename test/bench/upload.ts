import type { Bench } from './bench.ts';
import { startHoldover } from './holdover.ts';
import {
  type Row,
  type Sample,
  interleave,
  median,
  ratioRow,
  rounded,
  spreadOf,
  valuesOf,
} from './measure.ts';
import { startNginx } from './nginx.ts';
import { type Program, startOurs } from './program.ts';

const MB = 1e6;
const SIZES = { '100 MB': 100 * MB, '1 GB': 1000 * MB } as const;
const NGINX = 'nginx, default buffering';

type Sent = { readonly ms: number; readonly status: number };
type LoopDelay = { readonly p99Ms: number };

/** A large file received, hashed and sent on, against nginx with its default buffering. */
export const upload: Bench = {
  name: 'upload',
  needs: ['nginx'],
  async run({ workDir, rounds, keep }) {
    const sink = await keep(startOurs('v2-service', { side: 'load' }));
    const server = `location / { proxy_pass ${sink.url}; proxy_http_version 1.1; }`;
    const nginx = await keep(startNginx({ workDir, side: 'subject', server }));
    const args = ['--upstream', sink.url, '--object-info', 'embedded', '--max-upload-size', '2000'];
    const holdover = await keep(startHoldover({ workDir, args, watchLoop: true }));
    const uploader = await keep(startOurs('uploader', { side: 'load' }));
    const send = (program: Program, bytes: number) => sendFile(uploader, program, bytes);
    await send(holdover, MB);
    await send(nginx, MB);
    const baseBytes = holdover.rssBytes();
    const rows: Row[] = [];
    const peaks: number[] = [];
    for (const [name, bytes] of Object.entries(SIZES)) {
      const contestants = {
        holdover: () => watched(holdover, () => send(holdover, bytes)),
        nginx: () => send(nginx, bytes),
      };
      await interleave(1, contestants);
      const samples = await interleave(rounds, contestants);
      const against = { name: NGINX, samples: samples.nginx };
      const grown = valuesOf(samples.holdover, 'peakBytes').map((peak) => (peak - baseBytes) / MB);
      peaks.push(Math.max(...grown));
      rows.push(
        ratioRow({
          bench: 'upload',
          figure: `${name}: parse, hash, forward`,
          unit: 's',
          samples: samples.holdover,
          against,
          target: { kind: 'at most', ratio: 1.15 },
          cpuUnit: 's/GB',
        }),
        bound(`${name}: RSS above its base`, 'MB', { values: grown, most: 64 }),
        bound(`${name}: event-loop delay p99`, 'ms', {
          values: valuesOf(samples.holdover, 'p99Ms'),
          most: 20,
        }),
      );
    }
    const [small = 0, large = 0] = peaks;
    return [
      ...rows,
      bound('RSS at 1 GB beyond that at 100 MB', 'MB', { values: [large - small], most: 10 }),
    ];
  },
};

async function watched(holdover: Program, work: () => Promise<Sample>): Promise<Sample> {
  await holdover.ask({ reset: true });
  holdover.resetPeak();
  const sample = await work();
  const { p99Ms } = await holdover.ask<LoopDelay>({});
  return { ...sample, more: { p99Ms, peakBytes: holdover.peakRssBytes() } };
}

/** Seconds until the answer to an upload, and seconds of processor time a gigabyte. */
export async function sendFile(uploader: Program, to: Program, bytes: number): Promise<Sample> {
  const cpuBefore = to.cpuNs();
  const { ms, status } = await uploader.ask<Sent>({ url: `${to.url}/upload/image`, bytes });
  if (status >= 300) throw new Error(`the upload was answered with ${status}`);
  return { value: ms / 1000, cpuUs: (to.cpuNs() - cpuBefore) / bytes };
}

function bound(
  figure: string,
  unit: string,
  { values, most }: { readonly values: readonly number[]; readonly most: number },
): Row {
  const worst = Math.max(...values);
  return {
    bench: 'upload',
    figure,
    unit,
    holdover: median(values),
    reached: `at most ${rounded(worst)} ${unit}`,
    target: `≤ ${most} ${unit}`,
    holds: worst <= most,
    ...(values.length > 1 && { spread: spreadOf(values) }),
  };
}
