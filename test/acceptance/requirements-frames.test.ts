import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  NOT_A_PICTURE,
  entryOf,
  interrupt,
  formatOf,
  untilRunning,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import {
  type Received,
  type Recorder,
  connect,
  getJson,
  postPrompt,
} from '../support/clients/v1-client.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { testedUpstream } from '../support/upstreams/tested-upstream.ts';

// Requirements of v1 clients on the socket, ranked by how many of them break without it; the numbers are
// the ranks.

const MEBIBYTE = 1024 * 1024;

/** Frames that do not depend on what runs the jobs are looked at once. */
const IS_EMBEDDED = testedUpstream() === 'embedded';

/** The key of a user with sockets of both dialects: those with `token` in their address are hosted. */
const KEY = { 'X-API-Key': 'frames-key' };
const HOSTED = 'token=frames-key';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const holdover = useHoldover();
const opened: Recorder[] = [];

beforeAll(async () => {
  await uploadInput(holdover.url, { bytes: NOT_A_PICTURE, name: 'corrupt.png' });
});
afterEach(() => Promise.all(opened.splice(0).map((socket) => socket.close())));

async function open(options: Parameters<typeof connect>[1] = {}): Promise<Recorder> {
  const socket = await connect(holdover.wsUrl, options);
  opened.push(socket);
  return socket;
}

async function post(
  graph: object,
  extra: object = { client_id: 'test-client' },
  headers: Record<string, string> = {},
): Promise<string> {
  const { status, body } = await postPrompt(holdover.url, { prompt: graph, ...extra }, { headers });
  expect(status).toBe(200);
  return body.prompt_id;
}

const isText = (frame: Received, type: string): frame is Received & { kind: 'text' } =>
  frame.kind === 'text' && frame.type === type;
const texts = (socket: Recorder) => socket.frames.flatMap((f) => (f.kind === 'text' ? [f] : []));
const binaries = (socket: Recorder) =>
  socket.frames.flatMap((f) => (f.kind === 'binary' ? [f.bytes] : []));
const counts = (socket: Recorder): number[] =>
  texts(socket).flatMap((f) =>
    f.type === 'status' ? [f.data.status.exec_info.queue_remaining] : [],
  );
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The outcomes a waiting client must survive. */
const OUTCOMES = [
  { outcome: 'success', graph: growing({ seed: 900, steps: 4 }), stop: false },
  { outcome: 'error', graph: loading('corrupt.png'), stop: false },
  { outcome: 'interrupted', graph: endless({ seed: 901 }), stop: true },
];

describe('5: /ws?clientId= is taken at once and begins with status and sid', () => {
  test.each([['abc'], ['mit Leerzeichen & mehr'], ['ein/schrä.ger:Name']])(
    '%s',
    async (clientId) => {
      const socket = await open({ clientId });
      const first = await socket.until(() => true);
      expect(first).toMatchObject({
        type: 'status',
        data: { status: { exec_info: { queue_remaining: 0 } }, sid: clientId },
      });
    },
  );
});

describe.each(OUTCOMES)('after $outcome', ({ outcome, graph, stop }) => {
  /** Looks at the history the very moment a frame arrives. */
  async function historyAt(test_: (frame: Received, id: string) => boolean): Promise<unknown> {
    const socket = await open();
    const seen = new Promise((resolve) => {
      let id = '';
      socket.socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) return;
        const { type, data: fields } = JSON.parse(data.toString());
        id ||= fields.prompt_id ?? '';
        const frame = { kind: 'text', text: '', type, data: fields } as const;
        if (id !== '' && test_(frame, id)) resolve(entryOf(holdover.url, id));
      });
    });
    await post(graph);
    if (stop) await untilRunning(holdover.url).then(() => interrupt(holdover.url));
    return seen;
  }

  test('8: the last frame is executing with node null and the prompt_id', async () => {
    const socket = await open();
    const id = await post(graph);
    if (stop) await untilRunning(holdover.url).then(() => interrupt(holdover.url));
    await socket.untilDone(id);
    await sleep(50);
    expect(texts(socket).at(-1)!.data).toEqual({ node: null, prompt_id: id });
    expect(socket.frames.at(-1)!.kind).toBe('text');
  });

  test('9: the history is there when the terminal frame arrives', async () => {
    const entry = await historyAt((f) => isText(f, 'executing') && f.data.node === null);
    expect(entry).toMatchObject({
      status: { status_str: outcome === 'success' ? 'success' : 'error' },
    });
  });

  test('9: the history is there when queue_remaining falls to 0', async () => {
    const entry = await historyAt(
      (f) => isText(f, 'status') && f.data.status.exec_info.queue_remaining === 0,
    );
    expect(entry).toMatchObject({ status: { completed: outcome === 'success' } });
  });
});

describe('16: queue_remaining counts this user’s live prompts', () => {
  test('from the answered POST until the history is written, then it is 0', async () => {
    const socket = await open();
    await socket.until((frame) => isText(frame, 'status'));
    const id = await post(growing({ seed: 160 }));
    expect(await getJson(`${holdover.url}/prompt`)).toEqual({ exec_info: { queue_remaining: 1 } });
    const late = await open({ clientId: 'late' });
    expect(counts(late)[0] ?? 1).toBe(1);
    await socket.untilDone(id);
    expect(await getJson(`${holdover.url}/prompt`)).toEqual({ exec_info: { queue_remaining: 0 } });
    expect(counts(socket)).toEqual([0, 1, 1, 0]);
  });
});

test('17: nothing of a prompt is received before the answer to its POST, not even its status', async () => {
  const socket = await open();
  const graph = flat({ color: 170 });
  await socket.untilDone(await post(graph));
  const firsts: string[] = [];
  for (let round = 0; round < 20; round++) {
    const id = `held-${round}`;
    const order: string[] = [];
    const note = (data: Buffer): void => void order.push(`frame: ${data.toString()}`);
    socket.socket.on('message', note);
    const body = JSON.stringify({ prompt: graph, client_id: 'test-client', prompt_id: id });
    const tcp = connectTcp(holdover.port, '127.0.0.1');
    tcp.on('data', (chunk) => void order.push(`answer: ${chunk.toString()}`));
    const head = `POST /prompt HTTP/1.1\r\nHost: 127.0.0.1:${holdover.port}\r\nContent-Length: ${body.length}`;
    tcp.write(`${head}\r\nConnection: close\r\n\r\n${body}`);
    await socket.untilDone(id);
    socket.socket.off('message', note);
    firsts.push(order[0]!);
  }
  expect(firsts.filter((first) => !first.startsWith('answer: HTTP/1.1 200'))).toEqual([]);
});

test('17: a prompt whose sender hung up before the answer runs to its end all the same', async () => {
  const socket = await open();
  const body = JSON.stringify({
    prompt: flat({ color: 171 }),
    client_id: 'test-client',
    prompt_id: 'hung-up',
  });
  const tcp = connectTcp(holdover.port, '127.0.0.1');
  const head = `POST /prompt HTTP/1.1\r\nHost: 127.0.0.1:${holdover.port}\r\nContent-Length: ${body.length}`;
  tcp.end(`${head}\r\n\r\n${body}`);
  await socket.untilDone('hung-up');
  expect((await entryOf(holdover.url, 'hung-up')).status.completed).toBe(true);
});

describe('19: cancelling', () => {
  const ENDED = ['execution_interrupted', 'status:0', 'executing:null'];

  test.each([
    ['POST /interrupt without a body', '/interrupt', () => undefined],
    ['POST /interrupt {}', '/interrupt', () => '{}'],
    [
      'POST /interrupt {prompt_id}',
      '/interrupt',
      (id: string) => JSON.stringify({ prompt_id: id }),
    ],
    ['POST /interrupt {client_id}', '/interrupt', () => '{"client_id":"test-client"}'],
    ['POST /interrupt with garbage', '/interrupt', () => '}{'],
  ])(
    '%s ends a running prompt with execution_interrupted, status, terminal frame',
    async (_call, path, body) => {
      const socket = await open();
      const id = await post(endless({ seed: 190 }));
      await untilRunning(holdover.url);
      const text = body(id);
      const answer = await fetch(holdover.url + path, {
        method: 'POST',
        ...(text === undefined ? {} : { body: text }),
      });
      expect([answer.status, await answer.text()]).toEqual([200, '']);
      await socket.untilDone(id);
      expect(socket.outline().slice(-3)).toEqual(ENDED);
    },
  );

  test('POST /api/queue {delete} of a hosted client does so, and names what it cancelled', async () => {
    const socket = await open();
    const id = await post(endless({ seed: 190 }));
    await untilRunning(holdover.url);
    const answer = await fetch(`${holdover.url}/api/queue`, {
      method: 'POST',
      headers: { 'X-API-Key': '' },
      body: JSON.stringify({ delete: [id] }),
    });
    expect(await answer.json()).toEqual({ deleted: [id], cleared: false });
    await socket.untilDone(id);
    expect(socket.outline().slice(-3)).toEqual(ENDED);
  });

  test.each([
    ['{delete: [id]}', (id: string) => ({ delete: [id] })],
    ['{clear: true}', () => ({ clear: true })],
  ])('POST /queue %s ends a waiting prompt, so that no client hangs', async (_body, body) => {
    const socket = await open();
    const head = await post(endless({ seed: 191 }));
    const waiting = await post(endless({ seed: 192 }));
    await untilRunning(holdover.url);
    const answer = await fetch(`${holdover.url}/queue`, {
      method: 'POST',
      body: JSON.stringify(body(waiting)),
    });
    expect([answer.status, await answer.text()]).toEqual([200, '']);
    await socket.untilDone(waiting);
    expect(socket.outline(waiting)).toEqual(['execution_interrupted', 'executing:null']);
    expect((await entryOf(holdover.url, waiting)).status).toMatchObject({ status_str: 'error' });
    expect((await getJson(`${holdover.url}/queue`)).queue_running[0][1]).toBe(head);
    await interrupt(holdover.url);
    await socket.untilDone(head);
  });

  test('an interrupt that names a prompt leaves every other one alone', async () => {
    const socket = await open();
    const head = await post(endless({ seed: 193 }));
    await untilRunning(holdover.url);
    await fetch(`${holdover.url}/interrupt`, {
      method: 'POST',
      body: '{"prompt_id":"another-users"}',
    });
    expect((await getJson(`${holdover.url}/api/job/${head}/status`)).status).toBe('executing');
    await interrupt(holdover.url);
    await socket.untilDone(head);
  });
});

describe('21: previews', () => {
  const ASKS = { client_id: 'test-client', extra_data: { preview_method: 'auto' } };
  const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0 Safari/537.36';

  test.each([
    ['a program', {}, '', 0],
    ['a program that sends an Origin', { Origin: 'SELF' }, '', 0],
    ['a program that calls itself a browser', { 'User-Agent': BROWSER }, '', 0],
    ['a browser', { Origin: 'SELF', 'User-Agent': BROWSER }, '', 1],
    ['a hosted program', KEY, HOSTED, 1],
  ])('with default settings, those of samplers to %s', async (_who, given, query, type) => {
    const headers = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value.replace('SELF', holdover.url)]),
    );
    const clientId = `previews ${_who}`;
    const socket = await open({ clientId, headers, query });
    const graph = growing({ seed: 2090 + _who.length });
    const id = await post(graph, { client_id: clientId }, query === HOSTED ? KEY : {});
    await socket.untilDone(id);
    expect(binaries(socket)[0]?.readUInt32BE(0) ?? 0).toBe(type);
  });

  test('type 1 frames are tagged as what they are and stay between their node and the end', async () => {
    const socket = await open();
    const id = await post(growing({ seed: 210 }), ASKS);
    await socket.untilDone(id);
    const outline = socket.outline(id);
    const places = outline.flatMap((word, at) => (word === 'binary:1' ? [at] : []));
    expect(places.length).toBeGreaterThan(0);
    expect(places[0]).toBeGreaterThan(outline.findIndex((word) => word.startsWith('progress:')));
    expect(places.at(-1)).toBeLessThan(outline.indexOf('executing:9'));
    for (const frame of binaries(socket)) {
      expect(frame.readUInt32BE(4)).toBe(1);
      expect(await formatOf(frame.subarray(8))).toMatch(/^jpeg /);
    }
  });

  test('a socket that negotiated metadata gets type 4, another of the same client id type 1', async () => {
    const [modern, plain] = [await open(), await open()];
    modern.send({ type: 'feature_flags', data: { supports_preview_metadata: true } });
    await modern.until((frame) => isText(frame, 'feature_flags'));
    const id = await post(growing({ seed: 211 }), ASKS);
    await Promise.all([modern.untilDone(id), plain.untilDone(id)]);
    const kinds = (socket: Recorder) =>
      new Set(binaries(socket).map((frame) => frame.readUInt32BE(0)));
    expect([kinds(modern), kinds(plain)]).toEqual([new Set([4]), new Set([1])]);
    const [frame] = binaries(modern);
    const length = frame!.readUInt32BE(4);
    expect(JSON.parse(frame!.subarray(8, 8 + length).toString())).toMatchObject({
      node_id: '1',
      prompt_id: id,
      image_type: 'image/jpeg',
    });
    expect(await formatOf(frame!.subarray(8 + length))).toMatch(/^jpeg /);
  });
});

test.runIf(IS_EMBEDDED)(
  '23: while a prompt waits, a text frame comes at least every eight seconds',
  async () => {
    const blocker = { 'X-API-Key': 'blocker' };
    await postPrompt(holdover.url, { prompt: endless() }, { headers: blocker });
    await untilRunning(holdover.url, blocker);
    const socket = await open();
    const id = await post(flat({ color: 230 }));
    const arrivals = [Date.now()];
    socket.socket.on('message', (_data, isBinary) => {
      if (!isBinary) arrivals.push(Date.now());
    });
    await sleep(8500);
    arrivals.push(Date.now());
    await interrupt(holdover.url, blocker);
    await socket.untilDone(id);
    const silences = arrivals.slice(1).map((at, index) => at - arrivals[index]!);
    expect(Math.max(...silences)).toBeLessThanOrEqual(8000);
  },
  30_000,
);

describe('30: sockets', () => {
  test('without a clientId the server names one, which then works as client_id', async () => {
    const socket = await open({ clientId: null });
    const first = await socket.until((frame) => isText(frame, 'status'));
    const { sid } = (first as Received & { kind: 'text' }).data;
    expect(sid).toMatch(/^[0-9a-f]{32}$/);
    await socket.untilDone(await post(flat({ color: 300 }), { client_id: sid }));
  });

  /** The answer comes after everything that is sent to a new socket. */
  async function handedAll(socket: Recorder): Promise<void> {
    socket.send({ type: 'feature_flags', data: {} });
    await socket.until((frame) => isText(frame, 'feature_flags'));
  }

  test.each([
    ['by its id, from the history', (id: string) => `/history/${id}`],
    ['by its id, from the jobs', (id: string) => `/api/jobs/${id}`],
    ['in the whole history', () => '/history'],
    ['in the list of jobs', () => '/api/jobs'],
  ])('a result that a program fetched %s is told to no late socket', async (_how, path) => {
    const clientId = `fetched ${path('')}`;
    const ids = [await post(flat({ color: 303 }), { client_id: clientId }, KEY)];
    await ended();
    ids.push(await post(flat({ color: 304 }), {}, KEY));
    await ended();
    for (const id of ids) await getJson(`${holdover.url}${path(id)}`, KEY);
    for (const query of ['', HOSTED]) {
      const late = await open({ clientId, query, headers: KEY });
      await handedAll(late);
      for (const id of ids) expect(late.outline(id)).toEqual([]);
    }
  });

  test('a list that a browser or the own page fetched, or a look before the end, takes nothing away', async () => {
    const clientId = 'waits-on';
    await post(endless({ seed: 304 }), {}, KEY);
    await untilRunning(holdover.url, KEY);
    const id = await post(growing({ seed: 305, steps: 8 }), { client_id: clientId }, KEY);
    // It waits: a look that shows its end would be the answer that a late socket need not repeat.
    expect((await getJson(`${holdover.url}/api/job/${id}/status`, KEY)).status).not.toBe('success');
    await interrupt(holdover.url, KEY);
    await ended();
    await getJson(`${holdover.url}/history`, { ...KEY, 'User-Agent': 'Mozilla/5.0 (a browser)' });
    await getJson(`${holdover.url}/api/jobs/${id}`, { ...KEY, 'Holdover-Page': '1' });
    const late = await open({ clientId, headers: KEY });
    await late.untilDone(id);
    expect(late.outline(id)).toContain('execution_start');
  });

  /** Not by asking for it: a result that was fetched is not told to a late socket. */
  const ended = () =>
    expect
      .poll(async () => (await getJson(`${holdover.url}/prompt`, KEY)).exec_info, {
        timeout: 20_000,
      })
      .toEqual({ queue_remaining: 0 });

  test('all sockets of one client id hear everything, also after one of them has gone', async () => {
    const [first, second, third] = [await open(), await open(), await open()];
    const id = await post(growing({ seed: 303 }));
    await first!.until((frame) => isText(frame, 'progress'));
    await first!.close();
    await Promise.all([second!.untilDone(id), third!.untilDone(id)]);
    expect(second!.outline(id).filter((word) => word !== 'binary:1')).toEqual(
      third!.outline(id).filter((word) => word !== 'binary:1'),
    );
  });
});

test('31: a user’s oldest prompt is shown as running while others’ prompts hold the engine', async () => {
  const other = { 'X-API-Key': 'holds-the-engine' };
  await postPrompt(holdover.url, { prompt: endless({ seed: 310 }) }, { headers: other });
  await untilRunning(holdover.url, other);
  const socket = await open();
  const [first, second] = [await post(flat({ color: 311 })), await post(flat({ color: 312 }))];
  const { queue_running: running, queue_pending: pending } = await getJson(`${holdover.url}/queue`);
  expect([running, pending].map((list) => list.map((item: any) => item[1]))).toEqual([
    [first],
    [second],
  ]);
  expect((await getJson(`${holdover.url}/api/job/${first}/status`)).status).toBe('queued_waiting');
  await interrupt(holdover.url, other);
  await socket.untilDone(second);
});

test('36: a failing node’s huge inputs do not make a text frame of 1 MiB', async () => {
  // A name of this length is refused by every file system, and v1 says so at run time.
  const graph = flat({ prefix: 'x"\\\n'.repeat(600_000), color: 360 });
  const socket = await open();
  const id = await post(graph);
  await socket.untilDone(id);
  expect(socket.outline(id)).toContain('execution_error');
  expect(Math.max(...texts(socket).map(({ text }) => Buffer.byteLength(text)))).toBeLessThan(
    MEBIBYTE,
  );
});

// The last one: the server has ended then.
test('a socket closes normally when the server is told to stop', async () => {
  const { socket } = await open();
  const closed = once(socket, 'close');
  await holdover.terminate();
  expect((await closed)[0]).toBe(1001);
});
