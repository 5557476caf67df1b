import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import sharp from 'sharp';
import type { Bench, Context } from '../bench.ts';
import { writeRandom } from '../download.ts';
import { type HoldoverOptions, startHoldover } from '../holdover.ts';
import { type Row, type Sample, interleave, median, ratioRow } from '../measure.ts';
import { startNginx } from '../nginx.ts';
import { type Program, startOurs } from '../program.ts';
import { sendFile } from '../upload.ts';
import { wrk } from '../wrk.ts';
import type { Checkout } from './checkouts.ts';
import { saveOutput } from './output-file.ts';

const MB = 1e6;
const LARGE = 100 * MB;
/** Several of the large file, on a busy machine too. */
const LARGE_SECONDS = 5;
const UPLOAD = 20 * MB;
const UPLOADS = 3;
/** Noise does not get smaller: width × height × 3 bytes are 5 MB. */
const SIDES = { width: 1300, height: 1282 } as const;
const LIMIT = ['--max-upload-size', '200'] as const;

/** Outputs and uploads, embedded and of a remote service. */
export const files = (reference: Checkout): Bench => ({
  name: 'files',
  needs: ['nginx', 'wrk'],
  async run(context) {
    const { workDir, keep } = context;
    const far = await keep(startHoldover({ workDir, checkout: reference.dir, side: 'load' }));
    const embedded = await bothOf(context, { args: LIMIT, reference });
    const remote = await bothOf(context, { args: ['--upstream', far.url], reference });
    return [
      await viewRow(context, { title: 'embedded', servers: embedded, reference }),
      await viewRow(context, { title: 'of a second Holdover', servers: remote, reference }),
      ...(await largeRows(context, { servers: embedded, reference })),
      ...(await uploadRows(context, { servers: remote, reference })),
    ];
  },
});

type Both = { readonly subject: Program; readonly reference: Program };
type Measured = { readonly servers: Both; readonly reference: Checkout };

async function bothOf(
  { workDir, keep }: Context,
  { args, reference }: Pick<HoldoverOptions, 'args'> & { readonly reference: Checkout },
): Promise<Both> {
  const options = { workDir, ...(args && { args }) };
  const subject = await keep(startHoldover(options));
  return {
    subject,
    reference: await keep(startHoldover({ ...options, checkout: reference.dir })),
  };
}

async function viewRow(
  { workDir, rounds }: Context,
  { title, servers, reference }: Measured & { readonly title: string },
): Promise<Row> {
  const { width, height } = SIDES;
  const pixels = randomBytes(width * height * 3);
  const png = await sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
  const paths = {
    subject: await saveOutput(servers.subject.url, png),
    reference: await saveOutput(servers.reference.url, png),
  };
  const view = (name: keyof Both) => () =>
    downloadMs(servers[name], { workDir, path: paths[name] });
  const contestants = { subject: view('subject'), reference: view('reference') };
  await interleave(1, contestants);
  const found = await interleave(rounds, contestants);
  return ratioRow({
    bench: 'files',
    figure: `GET /view, 5 MB, ${title}`,
    unit: 'ms',
    samples: found.subject,
    against: { name: reference.commit, samples: found.reference },
    target: { kind: 'at most', ratio: 0.7 },
    cpuUnit: 'µs/file',
  });
}

type Download = { readonly workDir: string; readonly path: string; readonly seconds?: number };

/** One connection, one file after another; the median. */
async function downloadMs(
  program: Program,
  { workDir, path, seconds = 2 }: Download,
): Promise<Sample> {
  const url = program.url + path;
  const load = { workDir, url, connections: 1, seconds, timeoutSeconds: 60 };
  const { more, value, ...sample } = await wrk(program, load);
  if (value === 0) throw new Error(`${url}: no file arrived within ${seconds} s`);
  return { ...sample, value: more?.['p50Ms'] ?? Number.NaN };
}

async function largeRows(context: Context, { servers, reference }: Measured): Promise<Row[]> {
  const { workDir, rounds, keep } = context;
  const uploader = await keep(startOurs('uploader', { side: 'load' }));
  for (const server of Object.values(servers)) await sendFile(uploader, server, LARGE);
  const file = join(workDir, 'large.bin');
  await writeRandom(file);
  const nginx = await keep(
    startNginx({ workDir, side: 'subject', server: `location = /large { alias ${file}; }` }),
  );
  const large = { workDir, path: '/view?filename=bench.bin&type=input', seconds: LARGE_SECONDS };
  const contestants = {
    subject: () => downloadMs(servers.subject, large),
    reference: () => downloadMs(servers.reference, large),
    nginx: () => downloadMs(nginx, { ...large, path: '/large' }),
  };
  await interleave(1, contestants);
  const found = await interleave(rounds, contestants);
  const samples = found.subject;
  const common = { bench: 'files', unit: 'ms', samples, cpuUnit: 'µs/file' } as const;
  return [
    ratioRow({
      ...common,
      figure: 'GET /view, 100 MB, embedded',
      against: { name: 'nginx, the same from its disk', samples: found.nginx },
      target: { kind: 'at most', ratio: 1.2 },
    }),
    ratioRow({
      ...common,
      figure: 'the same',
      against: { name: reference.commit, samples: found.reference },
    }),
  ];
}

async function uploadRows(context: Context, { servers, reference }: Measured): Promise<Row[]> {
  const sink = await context.keep(startOurs('v2-service', { side: 'load' }));
  const args = ['--upstream', sink.url, '--object-info', 'embedded'];
  const toSink = await bothOf(context, { args, reference });
  return [
    await uploadRow(context, { title: 'to a second Holdover', servers, reference }),
    await uploadRow(context, {
      title: 'to a service that drops the bytes',
      servers: toSink,
      reference,
    }),
  ];
}

async function uploadRow(
  { keep, rounds }: Context,
  { title, servers, reference }: Measured & { readonly title: string },
): Promise<Row> {
  const uploader = await keep(startOurs('uploader', { side: 'load' }));
  const send = (program: Program) => async (): Promise<Sample> => {
    const sent: Sample[] = [];
    for (let left = UPLOADS; left > 0; left--) {
      sent.push(await sendFile(uploader, program, UPLOAD));
    }
    const cpuUs = median(sent.map((one) => (one.cpuUs ?? Number.NaN) * (UPLOAD / 1000)));
    return { value: median(sent.map(({ value }) => value * 1000)), cpuUs };
  };
  const contestants = { subject: send(servers.subject), reference: send(servers.reference) };
  await interleave(1, contestants);
  const found = await interleave(rounds, contestants);
  return ratioRow({
    bench: 'files',
    figure: `POST /upload/image, 20 MB, ${title}`,
    unit: 'ms',
    samples: found.subject,
    against: { name: reference.commit, samples: found.reference },
    target: { kind: 'at most', ratio: 0.6 },
    cpuUnit: 'µs/file',
  });
}
