// A stop in good order, and what a start finds.
import { once } from 'node:events';
import { cp, open, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { pngOf, untilRunning, uploadInput } from '../support/clients/client-helpers.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { openPair } from '../support/processes/holdover-before-hostile.ts';
import { fault } from '../support/upstreams/hostile-v2.ts';
import { CANARY, filesWith } from '../support/processes/expect-healthy.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat, growing, loading } from '../support/graphs/workflows.ts';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';

// Each starts a process or three.
vi.setConfig({ testTimeout: 60_000 });

let dataDir: string;
let servers: Holdover[];

beforeEach(async () => {
  dataDir = await tempFolder('stop');
  servers = [];
});
afterEach(async () => {
  for (const server of servers) await server.dispose();
});

async function start(): Promise<Holdover> {
  const server = await startHoldover({ dataDir });
  servers.push(server);
  return server;
}

const ANN = { 'X-API-Key': 'ann' };

async function ended(server: Holdover, promptId: string, headers = {}): Promise<any> {
  const asked = () => getJson(`${server.url}/history/${promptId}`, headers);
  await expect.poll(asked, { timeout: 20_000 }).toHaveProperty([promptId]);
  return (await asked())[promptId];
}

describe('SIGTERM', () => {
  test('amid a run and an upload closes the sockets with 1001, exits with 0, and the run is taken up again', async () => {
    const server = await start();
    const sockets = await Promise.all(
      ['a', 'b', 'a'].map((clientId) => connect(server.wsUrl, { clientId })),
    );
    const closed = sockets.map(async ({ socket }) => (await once(socket, 'close'))[0]);
    await postPrompt(server.url, {
      prompt: growing({ steps: 60 }),
      prompt_id: 'runs',
      client_id: 'a',
    });
    await postPrompt(server.url, { prompt: flat(), prompt_id: 'waits', client_id: 'a' });
    await untilRunning(server.url);
    const upload = await dial(server.port);
    const headers = ['Content-Type: multipart/form-data; boundary=b', 'Content-Length: 1000000'];
    upload.send(`${requestText('/upload/image', { method: 'POST', headers })}--b\r\n`);
    expect((await fetch(`${server.url}/queue`)).status).toBe(200);
    expect(await server.terminate()).toBe(0);
    upload.reset();
    expect(await Promise.all(closed)).toEqual([1001, 1001, 1001]);
    expect(server.log()).not.toMatch(/"level":[56]0/);

    const again = await start();
    for (const id of ['runs', 'waits']) {
      expect((await ended(again, id)).status).toMatchObject({
        status_str: 'success',
        completed: true,
      });
    }
  });

  test('answers a prompt that its service takes seconds to accept', async () => {
    const { upstream, holdover } = await openPair();
    servers.push(holdover);
    onTestFinished(() => upstream.close());
    upstream.once('submit', fault.late(3500));
    const posted = postPrompt(holdover.url, { prompt: flat() });
    await expect.poll(() => upstream.requests('submit')).toHaveLength(1);
    const stopped = holdover.terminate();
    expect((await posted).status).toBe(200);
    expect(await stopped).toBe(0);
    expect(holdover.log()).not.toMatch(/"level":[56]0/);
  });

  test('and then SIGTERM or SIGINT is the end at once', async () => {
    let server = await start();
    await postPrompt(server.url, { prompt: endless() });
    for (const second of ['SIGTERM', 'SIGINT'] as const) {
      await untilRunning(server.url);
      const stopped = server.terminate();
      await expect.poll(() => server.log()).toContain('stopping');
      try {
        process.kill(server.pid, second);
      } catch {
        // It was faster.
      }
      expect([0, 1]).toContain(await stopped);
      server = await start();
      expect((await getJson(`${server.url}/queue`)).queue_running).toHaveLength(1);
    }
  });
});

describe('a start refuses with one line, and touches nothing, when', () => {
  let used: string;
  beforeAll(async () => {
    used = await runFolder('used');
    const server = await startHoldover({ dataDir: used });
    await postPrompt(server.url, { prompt: flat() });
    await server.terminate();
  });
  beforeEach(() => cp(used, dataDir, { recursive: true }));

  const refusal = async (): Promise<string> => {
    const { code, stdout, stderr } = await runHoldover(['--port', '0', '--data-dir', dataDir]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
    expect(stderr).not.toMatch(/\bat \S+ \(/);
    return stderr;
  };

  test.each([
    [
      'damaged in its middle',
      async (path: string) => overwrite(path, 4096, (await stat(path)).size - 4096),
    ],
    ['cut off', async (path: string) => truncate(path, Math.floor((await stat(path)).size / 2))],
  ])('the database is %s', async (_, damage) => {
    const path = join(dataDir, 'holdover.db');
    await damage(path);
    const damaged = await readFile(path);
    expect(await refusal()).toMatch(/holdover\.db is damaged/);
    expect(Buffer.compare(await readFile(path), damaged)).toBe(0);
  });

  test('the database is from another version', async () => {
    const path = join(dataDir, 'holdover.db');
    const version = Buffer.alloc(4);
    version.writeUInt32BE(9999);
    await overwrite(path, 60, version);
    expect(await refusal()).toMatch(/another version of Holdover/);
  });

  test('the secret is damaged', async () => {
    await writeFile(join(dataDir, 'secret.key'), 'short');
    expect(await refusal()).toMatch(/secret\.key/);
  });

  test('the data directory is a file', async () => {
    await rm(dataDir, { recursive: true });
    await writeFile(dataDir, 'not a directory');
    await refusal();
  });
});

async function overwrite(path: string, at: number, what: number | Buffer): Promise<void> {
  const bytes = typeof what === 'number' ? Buffer.alloc(what, 0xa5) : what;
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, at);
  await file.close();
}

/** A second process on the same data directory refuses with one line, and harms no other. */
async function refuseSecond(server: Holdover): Promise<void> {
  const upload = await dial(server.port);
  const body =
    '--b\r\nContent-Disposition: form-data; name="image"; filename="a.txt"\r\n\r\nhello\r\n--b--\r\n';
  const headers = [
    'Content-Type: multipart/form-data; boundary=b',
    `Content-Length: ${body.length}`,
  ];
  upload.send(requestText('/upload/image', { method: 'POST', headers }) + body.slice(0, -20));

  const second = await runHoldover(['--port', '0', '--data-dir', dataDir]);
  expect(second).toMatchObject({ code: 1, stdout: '' });
  expect(second.stderr).toMatch(/^error: .*in use by another Holdover.*\n$/);

  upload.send(body.slice(-20));
  expect((await upload.answer()).status).toBe(200);
  expect((await fetch(`${server.url}/queue`)).status).toBe(200);
}

/** During the delay of a stop it says so to the balancer, and takes calls. */
async function stopLate(server: Holdover): Promise<void> {
  const health = async () => (await fetch(`${server.url}/healthz`)).status;
  expect(await health()).toBe(200);
  const stopped = server.terminate();
  await expect.poll(health).toBe(503);
  const ready = await fetch(`${server.url}/readyz`);
  expect([ready.status, await ready.json()]).toEqual([503, { status: 'stopping' }]);
  const late = { prompt: flat(), prompt_id: 'late' };
  expect((await postPrompt(server.url, late, { headers: ANN })).status).toBe(200);
  expect(await stopped).toBe(0);
}

test('after a second process was refused and a stop with a delay, history, settings, uploads and results are there', async () => {
  const before = await startHoldover({ dataDir, env: { HOLDOVER_SHUTDOWN_DELAY: '2' } });
  servers.push(before);
  await refuseSecond(before);
  const bytes = await pngOf();
  await uploadInput(before.url, { name: 'kept.png', bytes, fields: { subfolder: 'deep/er' } });
  const settings = '{"Comfy.Big":18446744073709551615,"Comfy.Text":"x"}';
  await fetch(`${before.url}/settings`, { method: 'POST', body: settings });
  await postPrompt(before.url, { prompt: loading('deep/er/kept.png'), prompt_id: 'kept' });
  const entry = await ended(before, 'kept');
  const pictures = Object.values<any>(entry.outputs).flatMap(({ images }) => images);
  const look = async ({ url }: Holdover) => ({
    history: await getJson(`${url}/history`),
    jobs: await getJson(`${url}/api/jobs`),
    settings: await (await fetch(`${url}/settings`)).text(),
    objectInfo: await getJson(`${url}/object_info/LoadImage`),
    files: await Promise.all(
      [{ filename: 'kept.png', subfolder: 'deep/er', type: 'input' }, ...pictures].map(
        async (file) => {
          const answer = await fetch(`${url}/view?${new URLSearchParams(file)}`);
          return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) };
        },
      ),
    ),
  });
  const seen = await look(before);
  expect(seen.files.map(({ status }) => status)).toEqual([200, 200]);
  await stopLate(before);
  const again = await start();
  expect(await look(again)).toEqual(seen);
  expect((await ended(again, 'late', ANN)).status.status_str).toBe('success');
});

test('no key a client presents, and no secret it sends along, is ever written down', async () => {
  const server = await start();
  const extra_data = {
    api_key_comfy_org: `${CANARY}-extra`,
    auth_token_comfy_org: `${CANARY}-token`,
    extra_pnginfo: { workflow: { id: 'w' } },
  };
  const headersOf: Record<string, string>[] = [
    { 'X-API-Key': `${CANARY}-key` },
    { Authorization: `Bearer ${CANARY}-bearer` },
    { Authorization: `Basic ${Buffer.from(`:${CANARY}-basic`).toString('base64')}` },
  ];
  for (const headers of headersOf) {
    await uploadInput(server.url, { name: 'a.png', bytes: await pngOf() }, headers);
    await postPrompt(
      server.url,
      { prompt: loading('a.png'), prompt_id: 'done', extra_data },
      { headers },
    );
    await expect
      .poll(() => getJson(`${server.url}/history`, headers), { timeout: 15_000 })
      .toHaveProperty('done');
    await fetch(`${server.url}/settings`, { method: 'POST', body: '{"a":1}', headers });
    await fetch(`${server.url}/api/view?type=input&filename=a.png`, { headers });
    await fetch(`${server.url}/api/v2/jobs`, {
      method: 'POST',
      headers: { ...headers, 'Idempotency-Key': `${headers['X-API-Key'] ? 'x' : 'y'}-1` },
      body: JSON.stringify({ workflow: flat(), extra_data: { api_key_comfy_org: `${CANARY}-v2` } }),
    });
  }
  for (const headers of headersOf) {
    await postPrompt(server.url, { prompt: endless(), prompt_id: 'live', extra_data }, { headers });
  }
  const token = await connect(server.wsUrl, { query: `token=${CANARY}-query` });
  await fetch(`${server.url}/queue?token=${CANARY}-query`);
  await fetch(`${server.url}/nothing/here?a=1&Token=${CANARY}-query`);
  await token.close();

  await server.kill9();
  expect(filesWith(dataDir, CANARY)).toEqual([]);
  const again = await start();
  expect(await again.terminate()).toBe(0);
  expect(filesWith(dataDir, CANARY)).toEqual([]);
  const encoded = Buffer.from(`:${CANARY}-basic`).toString('base64');
  for (const each of [server, again]) {
    expect(each.log()).not.toContain(CANARY);
    expect(each.log()).not.toContain(encoded);
  }
});
