import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { type HostileV2, type Hook, fault, output } from '../support/upstreams/hostile-v2.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import {
  type FileRef,
  type Pair,
  madeOutputs,
  openPair,
  usePair,
  startInFront,
  viewQuery,
} from '../support/processes/holdover-before-hostile.ts';
import { openStorageHost, sendFile } from '../support/upstreams/storage-host.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { streaming } from '../support/graphs/workflows.ts';

// How long names last, and whose they are, in front of a remote upstream.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const anna = { 'X-API-Key': 'key-of-anna' };
const ben = { 'X-API-Key': 'key-of-ben' };

const pair = usePair();
/** What becomes of calls for the bytes of some assets. */
const answers = new Map<string, Hook>();
beforeAll(() => holdIds(pair));

/** An upstream that has each asset’s own id as its bytes, unless said otherwise. */
function holdIds({ upstream }: Pair): void {
  const ownId: Hook = ({ req, res, id }) =>
    sendFile(res, { headers: req.headers, bytes: Buffer.from(`bytes of ${id}`) });
  upstream.always('content', (exchange) => (answers.get(exchange.id) ?? ownId)(exchange));
}

function reader(url: string, headers: Record<string, string>) {
  return async (file: Partial<FileRef>): Promise<[number, string]> => {
    const answer = await fetch(`${url}/view?${viewQuery(file)}`, { headers });
    return [answer.status, await answer.text()];
  };
}

describe('names of outputs', () => {
  test('equal names of different jobs never stand for each other’s bytes', async () => {
    const named = { name: 'ComfyUI_00001_.png' };
    const read = reader(pair.holdover.url, anna);
    const made = [];
    for (const id of ['first', 'second', 'third']) {
      const { files } = await madeOutputs(pair, [{ ...named, id }], anna);
      made.push(...files);
    }
    expect(made.map(({ filename }) => filename)).toEqual([
      'ComfyUI_00001_.png',
      'ComfyUI_00002_.png',
      'ComfyUI_00003_.png',
    ]);
    expect(await Promise.all(made.map(read))).toEqual([
      [200, 'bytes of first'],
      [200, 'bytes of second'],
      [200, 'bytes of third'],
    ]);
  });

  test('equal names within one job neither', async () => {
    const sameNames = ['left', 'right'].map((id) => ({ id, name: 'same.png' }));
    const { files } = await madeOutputs(pair, sameNames, anna);
    expect(files.map(({ filename }) => filename)).toEqual(['same.png', 'same (1).png']);
    const read = reader(pair.holdover.url, anna);
    expect(await Promise.all(files.map(read))).toEqual([
      [200, 'bytes of left'],
      [200, 'bytes of right'],
    ]);
  });

  test('are no other user’s', async () => {
    const { files } = await madeOutputs(pair, [{ id: 'hers', name: 'hers.png' }], anna);
    const [file = {}] = files;
    expect(await reader(pair.holdover.url, anna)(file)).toEqual([200, 'bytes of hers']);
    expect(await reader(pair.holdover.url, ben)(file)).toEqual([404, '']);
    const his = await madeOutputs(pair, [{ id: 'his', name: 'hers.png' }], ben);
    expect(his.files[0]?.filename).toBe('hers.png');
    expect(await reader(pair.holdover.url, ben)(his.files[0]!)).toEqual([200, 'bytes of his']);
  });

  test('with ids that differ at their ends only are told apart by their ETags', async () => {
    const long = 'x'.repeat(200);
    const sameNames = ['1', '2'].map((end) => ({ id: long + end, name: `long-${end}.png` }));
    const { files } = await madeOutputs(pair, sameNames, anna);
    const tags = await Promise.all(
      files.map(async (file) => {
        const answer = await fetch(`${pair.holdover.url}/view?${viewQuery(file)}`, {
          headers: anna,
        });
        await answer.text();
        return answer.headers.get('etag');
      }),
    );
    expect(new Set(tags).size).toBe(2);
  });

  test.each([
    ['deep/er/x.png', 'x.png', 'deep/er'],
    ['deep\\x.png', 'x.png', 'deep'],
    ['../../x1.png', 'x1.png', ''],
    ['a..b.png', '_a_b.png', ''],
    ['.hidden', '_hidden', ''],
    ['x.png [input]', '_x.png _input_', ''],
    ['CON.png', '_CON.png', ''],
    ['line\r\nbreak.png', '_line__break.png', ''],
    [`${'ü'.repeat(300)}.png`, `_${'ü'.repeat(100)}.png`, ''],
    ['', '_', ''],
    ['50% of "it" (1).png', '50% of "it" (1).png', ''],
  ])('that say %j are found', async (name, filename, subfolder) => {
    const id = `odd-${name}`.slice(0, 40);
    const { files } = await madeOutputs(pair, [{ id, name }], anna);
    expect(files).toMatchObject([{ filename, subfolder, type: 'output' }]);
    expect(await reader(pair.holdover.url, anna)(files[0]!)).toEqual([200, `bytes of ${id}`]);
  });

  test('last as long as the upstream keeps the bytes, then are a 404', async () => {
    const { files } = await madeOutputs(pair, [{ id: 'kept', name: 'kept.png' }], anna);
    const [file = {}] = files;
    const read = reader(pair.holdover.url, anna);
    expect(await read(file)).toEqual([200, 'bytes of kept']);
    answers.set('kept', ({ req, res }) =>
      sendFile(res, { headers: req.headers, bytes: undefined }),
    );
    expect(await read(file)).toEqual([404, '']);
    const api = await fetch(`${pair.holdover.url}/api/view?${viewQuery(file)}`, {
      headers: anna,
      redirect: 'manual',
    });
    expect(api.status).toBe(404);
  });
});

describe('after a restart', () => {
  const carl = { 'X-API-Key': 'key-of-carl' };
  let upstream: HostileV2;
  let holdover: Holdover;
  /** Of an output of each user from before. */
  const old: { [user: string]: { readonly file: FileRef; readonly link: string } } = {};

  beforeAll(async () => {
    const first = await openPair();
    ({ upstream } = first);
    holdIds(first);
    for (const [user, headers] of Object.entries({ anna, carl, none: {} })) {
      const made = await madeOutputs(first, [{ id: `old-${user}`, name: 'old.png' }], headers);
      const file = made.files[0]!;
      const url = `${first.holdover.url}/api/view?${viewQuery(file)}`;
      // Node's `fetch` alone sends no header that makes it a browser.
      const redirected = await fetch(url, { headers, redirect: 'manual' });
      old[user] = { file, link: redirected.headers.get('location') ?? '' };
    }
    await first.holdover.kill9();
    const { dataDir, port } = first.holdover;
    holdover = await startInFront(upstream, { dataDir, port });
  });
  afterAll(async () => {
    await holdover.dispose();
    await upstream.close();
  });

  test('outputs and uploads are still there for their owner', async () => {
    const { file } = old['anna']!;
    expect(await reader(holdover.url, anna)(file)).toEqual([200, 'bytes of old-anna']);
    expect(await reader(holdover.url, ben)(file)).toEqual([404, '']);
  });

  test('a signed link is refused in words until its owner calls, whose key is not kept', async () => {
    answers.set('old-carl', (exchange) =>
      exchange.req.headers.authorization === 'Bearer key-of-carl'
        ? sendFile(exchange.res, { headers: {}, bytes: Buffer.from('bytes') })
        : fault.refuse(401, 'unauthorized')(exchange),
    );
    const { link } = old['carl']!;
    const early = await fetch(link);
    expect([early.status, await early.text()]).toEqual([403, expect.stringContaining('owner')]);
    expect((await fetch(`${holdover.url}/queue`, { headers: carl })).status).toBe(200);
    const late = await fetch(link);
    expect([late.status, await late.text()]).toEqual([200, 'bytes']);
  });

  test('a signed link works at once where the upstream takes no keys', async () => {
    expect(await (await fetch(old['none']!.link)).text()).toBe('bytes of old-none');
  });
});

test('a picture for the socket is fetched from behind a link', async () => {
  const storage = await openStorageHost();
  onTestFinished(() => storage.close());
  const picture = await pngOf();
  storage.files.set('/socket.png', picture);
  const location = { Location: `${storage.url}/socket.png` };
  answers.set('shown', ({ res }) => res.writeHead(302, location).end());
  const socket = await connect(pair.holdover.wsUrl, { clientId: 'pictures', headers: anna });
  const prompt = { prompt: streaming('7'), client_id: 'pictures' };
  const { body } = await postPrompt(pair.holdover.url, prompt, { headers: anna });
  const outputs = [output({ node_id: '7', id: 'shown', x_websocket: true })];
  pair.upstream.change(body.prompt_id, { status: 'succeeded', outputs });
  await socket.untilDone(body.prompt_id);
  const shown = socket.frames.flatMap((f) => (f.kind === 'binary' ? [f.bytes] : []));
  expect(shown.map((bytes) => bytes.subarray(-picture.length).equals(picture))).toEqual([true]);
  expect(storage.visits[0]?.headers.authorization).toBeUndefined();
  await socket.close();
});

test('an upload is its owner’s under its own name, whatever path the upstream says it has', async () => {
  // One server keeps one record for equal bytes: the first.
  const first = { ...output({ id: 'the-only-one' }), file_path: 'input/of-another-user.png' };
  pair.upstream.always('upload', ({ json }) => json(200, { ...first, created_new: false }));
  pair.upstream.always('asset', ({ json }) => json(200, first));
  const bytes = Buffer.from('same bytes');
  const names = ['a.png', 'b.png', 'a.png'];
  for (const name of names) {
    const answer = await uploadInput(pair.holdover.url, { bytes, name }, anna);
    expect(answer).toMatchObject({ name, subfolder: '', type: 'input' });
    const seen = await reader(pair.holdover.url, anna)({ filename: name, type: 'input' });
    expect(seen).toEqual([200, 'bytes of the-only-one']);
  }
  // At once, too: what is uploaded in vain is the record of the one before.
  const six = Array.from({ length: 6 }, () =>
    uploadInput(pair.holdover.url, { bytes, name: 'c.png' }, anna),
  );
  expect(new Set((await Promise.all(six)).map(({ name }) => name))).toEqual(new Set(['c.png']));
  expect(pair.upstream.journal.filter(({ method }) => method === 'DELETE')).toEqual([]);
});
