import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, expect, test, vi } from 'vitest';
import { type SpoolResult, spoolStream } from '../../../src/lib/spool.ts';
import type { AssetUpload, GrowingFile, UploadStart } from '../../../src/protocol/job-api.ts';
import { value } from '../../support/app/jobs.ts';
import { type HostileV2, fault } from '../../support/upstreams/hostile-v2.ts';
import { CALLER, type Opened, PATIENT, openRemote } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const MB = 1024 * 1024;
const PATH = 'input/a.png';

type Arriving = {
  readonly source: PassThrough;
  readonly file: GrowingFile;
  readonly spooled: Promise<SpoolResult>;
};

/** A file of which the first two megabytes have arrived. */
async function arriving(bytes: Buffer): Promise<Arriving> {
  const source = new PassThrough();
  const dir = await tempFolder('data');
  let spooled: Promise<SpoolResult> | undefined;
  const file = await new Promise<GrowingFile>((resolve) => {
    spooled = spoolStream(source, {
      dir,
      maxBytes: 64 * MB,
      durability: 'none',
      follow: resolve,
    });
    source.write(bytes.subarray(0, 2 * MB));
  });
  return { source, file, spooled: spooled! };
}

function startOf(file: GrowingFile): UploadStart {
  return { file, contentType: 'image/png', atMostBytes: 64 * MB };
}

/** Starts an upload, lets the rest of it arrive, and stores it. */
async function uploadWhileArriving({ remote }: Opened, bytes: Buffer) {
  const { source, file, spooled } = await arriving(bytes);
  const started = remote.startUpload(CALLER, startOf(file));
  source.end(bytes.subarray(2 * MB));
  const upload = await uploadOf(spooled);
  const answer = await remote.createAsset(CALLER, { ...upload, ...(started && { started }) });
  started?.cancel();
  return { answer, isStarted: started !== undefined };
}

async function uploadOf(spooled: Promise<SpoolResult>): Promise<AssetUpload> {
  const result = await spooled;
  if (!result.ok) throw new Error(result.message);
  const { hash: expectedHash } = result.value;
  return { file: result.value, contentType: 'image/png', filePath: PATH, expectedHash };
}

/** The bytes of the next upload that have arrived so far, and how its request ends. */
function watchNext(upstream: HostileV2) {
  const seen = { bytes: 0, end: 'none' as 'none' | 'whole' | 'aborted' };
  upstream.hasty.add('upload');
  upstream.once('upload', async ({ req }) => {
    try {
      for await (const chunk of req) seen.bytes += (chunk as Buffer).length;
      seen.end = 'whole';
    } catch {
      seen.end = 'aborted';
    }
  });
  return seen;
}

async function readUntil(req: IncomingMessage, bytes: number): Promise<void> {
  for (let read = 0; read < bytes;) {
    const [chunk] = (await once(req, 'data')) as [Buffer];
    read += chunk.length;
  }
}

async function openFiles(path: string): Promise<number> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((link) => link.startsWith(path)).length;
}

function partsOf(body: Buffer): (string | undefined)[] {
  return [...body.toString('latin1').matchAll(/; name="([^"]+)"/g)].map(([, name]) => name);
}

describe('an upload that is started while it arrives', () => {
  test('is one request: the file goes before what is known at its end', async () => {
    const opened = await openRemote();
    const bytes = randomBytes(9 * MB + 77);
    const { answer } = await uploadWhileArriving(opened, bytes);
    const { upstream } = opened;
    const { id, hash } = value(answer);
    expect(upstream.contents.get(id)?.equals(bytes)).toBe(true);
    const [request] = upstream.requests('upload');
    expect(partsOf(request!.body)).toEqual(['content_type', 'file', 'file_path', 'expected_hash']);
    expect(request!.body.toString('latin1')).toContain(`\r\n\r\n${hash}\r\n`);
    expect(request?.headers['content-length']).toBeUndefined();
    expect(request?.headers['idempotency-key']).toMatch(/.{36}/);
    expect(upstream.journal).toHaveLength(1);
  });

  test('reaches the upstream before its client has sent everything', async () => {
    const { upstream, remote } = await openRemote();
    const seen = watchNext(upstream);
    const { source, file, spooled } = await arriving(randomBytes(4 * MB));
    const started = remote.startUpload(CALLER, startOf(file));
    await vi.waitUntil(() => seen.bytes >= MB, PATIENT);
    expect(seen.end).toBe('none');
    source.destroy();
    await spooled;
    await vi.waitUntil(() => seen.end === 'aborted', PATIENT);
    started?.cancel();
  });

  test.each(['its client leaves', 'it is cancelled', 'it is cancelled when complete'])(
    'never becomes whole upstream when %s',
    async (what) => {
      const { upstream, remote } = await openRemote();
      const seen = watchNext(upstream);
      const { source, file, spooled } = await arriving(randomBytes(2 * MB));
      const started = remote.startUpload(CALLER, startOf(file));
      await vi.waitUntil(() => seen.bytes >= MB, PATIENT);
      if (what === 'its client leaves') source.destroy();
      if (what === 'it is cancelled when complete') await uploadOf((source.end(), spooled));
      started?.cancel();
      await vi.waitUntil(() => seen.end !== 'none', PATIENT);
      expect(seen.end).toBe('aborted');
      source.destroy();
      await spooled;
      await vi.waitFor(async () => expect(await openFiles(file.path)).toBe(0));
    },
  );
});

describe('an upload that failed while it arrived is sent once more, with its length', () => {
  const bytes = randomBytes(5 * MB);

  async function expectSentAgain(opened: Opened): Promise<void> {
    const { answer, isStarted } = await uploadWhileArriving(opened, bytes);
    expect(isStarted).toBe(true);
    const { upstream } = opened;
    expect(upstream.contents.get(value(answer).id)?.equals(bytes)).toBe(true);
    const last = upstream.requests('upload').at(-1);
    expect(partsOf(last!.body).at(-1)).toBe('file');
    expect(last?.headers['content-length']).toBe(String(last?.body.length));
  }

  test('after the upstream broke it off', async () => {
    const opened = await openRemote();
    const { upstream } = opened;
    upstream.hasty.add('upload');
    upstream.once('upload', async ({ req }) => {
      await readUntil(req, MB);
      upstream.hasty.delete('upload');
      req.socket.resetAndDestroy();
    });
    await expectSentAgain(opened);
  });

  test.each([
    [409, 'hash_mismatch'],
    [412, 'precondition_failed'],
    [422, 'invalid_body'],
    [429, 'rate_limited'],
    [503, 'upstream_unreachable'],
  ])('after %i %s', async (status, code) => {
    const opened = await openRemote({ limits: { uploadBudgetMs: 5_000 } });
    opened.upstream.once('upload', fault.refuse(status, code));
    await expectSentAgain(opened);
    expect(opened.upstream.requests('upload')).toHaveLength(2);
  });
});

describe('no upload is started', () => {
  test('where two in a row were accepted only when they were sent whole', async () => {
    const opened = await openRemote();
    const refuse = fault.refuse(422, 'invalid_body');
    const started: boolean[] = [];
    for (const _ of [1, 2, 3]) {
      if (started.length < 2) opened.upstream.once('upload', refuse);
      const { answer, isStarted } = await uploadWhileArriving(opened, randomBytes(3 * MB));
      value(answer);
      started.push(isStarted);
    }
    expect(started).toEqual([true, true, false]);
    expect(opened.upstream.requests('upload')).toHaveLength(5);
  });
});
