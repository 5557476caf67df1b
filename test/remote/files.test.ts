import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { fault, output } from '../support/upstreams/hostile-v2.ts';
import {
  type FileRef,
  type Pair,
  madeOutputs,
  openPair,
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

/** An upstream that has each asset’s own id as its bytes, as long as it has it. */
function holdIds({ upstream }: Pair): Set<string> {
  const lost = new Set<string>();
  upstream.always('content', ({ req, res, id }) => {
    const bytes = lost.has(id) ? undefined : Buffer.from(`bytes of ${id}`);
    sendFile(res, { headers: req.headers, bytes });
  });
  return lost;
}

function reader(url: string, headers: Record<string, string>) {
  return async (file: Partial<FileRef>): Promise<[number, string]> => {
    const answer = await fetch(`${url}/view?${viewQuery(file)}`, { headers });
    return [answer.status, await answer.text()];
  };
}

describe('names of outputs', () => {
  let pair: Pair;
  let lost: Set<string>;
  beforeAll(async () => {
    pair = await openPair();
    lost = holdIds(pair);
  });
  afterAll(async () => {
    await pair?.holdover.dispose();
    await pair?.upstream.close();
  });

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
    lost.add('kept');
    expect(await read(file)).toEqual([404, '']);
    const api = await fetch(`${pair.holdover.url}/api/view?${viewQuery(file)}`, {
      headers: anna,
      redirect: 'manual',
    });
    expect(api.status).toBe(404);
  });
});

describe('after a restart', () => {
  async function restarted(headers: Record<string, string>) {
    const pair = await openPair();
    holdIds(pair);
    const { files } = await madeOutputs(pair, [{ id: 'old', name: 'old.png' }], headers);
    const [file = {}] = files;
    const link = `${pair.holdover.url}/api/view?${viewQuery(file)}`;
    // Node's `fetch` alone sends no header that makes it a browser.
    const { location } = await redirectOf(link, headers);
    await pair.holdover.kill9();
    const holdover = await startInFront(pair.upstream, {
      dataDir: pair.holdover.dataDir,
      port: pair.holdover.port,
    });
    onTestFinished(async () => {
      await holdover.dispose();
      await pair.upstream.close();
    });
    return { upstream: pair.upstream, holdover, file, location };
  }

  async function redirectOf(url: string, headers: Record<string, string>) {
    const { headers: answered } = await fetch(url, { headers, redirect: 'manual' });
    return { location: answered.get('location') ?? '' };
  }

  test('outputs and uploads are still there for their owner', async () => {
    const { holdover, file } = await restarted(anna);
    expect(await reader(holdover.url, anna)(file)).toEqual([200, 'bytes of old']);
    expect(await reader(holdover.url, ben)(file)).toEqual([404, '']);
  });

  test('a signed link is refused in words until its owner calls, whose key is not kept', async () => {
    const { upstream, holdover, location } = await restarted(anna);
    upstream.always('content', (exchange) => {
      const { authorization } = exchange.req.headers;
      if (authorization !== 'Bearer key-of-anna')
        return fault.refuse(401, 'unauthorized')(exchange);
      sendFile(exchange.res, { headers: {}, bytes: Buffer.from('bytes') });
    });
    const early = await fetch(location);
    expect([early.status, await early.text()]).toEqual([403, expect.stringContaining('owner')]);
    expect((await fetch(`${holdover.url}/queue`, { headers: anna })).status).toBe(200);
    const late = await fetch(location);
    expect([late.status, await late.text()]).toEqual([200, 'bytes']);
  });

  test('a signed link works at once where the upstream takes no keys', async () => {
    const { location } = await restarted({});
    expect(await (await fetch(location)).text()).toBe('bytes of old');
  });
});

test('a picture for the socket is fetched from behind a link', async () => {
  const pair = await openPair();
  const storage = await openStorageHost();
  onTestFinished(async () => {
    await pair.holdover.dispose();
    await pair.upstream.close();
    await storage.close();
  });
  const picture = await pngOf();
  storage.files.set('/socket.png', picture);
  pair.upstream.always(
    'content',
    ({ res }) => void res.writeHead(302, { Location: `${storage.url}/socket.png` }).end(),
  );
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
  const pair = await openPair();
  onTestFinished(async () => {
    await pair.holdover.dispose();
    await pair.upstream.close();
  });
  holdIds(pair);
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
