// The embedded router as people start it: a process of its own, killed, stopped and started again.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type Wire, dial, requestText } from '../support/clients/raw-socket.ts';
import { filesWith } from '../support/processes/expect-healthy.ts';
import { type Answer, errorOf, read, said } from './open.ts';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000 });

const SECRET_KEY = 'comfyui-canary-7Qx1';

const dataDir = await runFolder('models');
let server: Holdover;
/** The settings of the server, while it runs. */
let settings: string | undefined;
afterAll(() => server?.dispose());

/** Starts it on what it stored, unless that of the test before runs with the same settings. */
async function start(limits: object = {}, args: readonly string[] = []): Promise<void> {
  const given = JSON.stringify([limits, args]);
  if (settings === given) return;
  await server?.kill9();
  server = await startHoldover({
    dataDir,
    args: ['--limits', JSON.stringify({ models: limits }), ...args],
  });
  settings = given;
}

async function kill9(): Promise<void> {
  settings = undefined;
  await server.kill9();
}

async function terminate(): Promise<number | null> {
  settings = undefined;
  return await server.terminate();
}

async function run(model: string, body: object, key: string): Promise<Answer> {
  return await read(
    await fetch(`${server.url}/v1/models/local/${model}`, {
      method: 'POST',
      headers: { 'X-API-Key': SECRET_KEY, 'Idempotency-Key': key },
      body: JSON.stringify(body),
    }),
  );
}

const replayed = ({ headers }: Answer) => headers.get('idempotent-replayed');

describe('kill -9', () => {
  test('charges are not lost and not doubled', async () => {
    const keys = join(await tempFolder('keys'), 'keys.json');
    const grant = { key: SECRET_KEY, workspace: 'w', credits_cents: 30 };
    await writeFile(keys, JSON.stringify({ keys: [grant] }));
    const priced = { seconds: 0, price_cents: 20 };
    await start({}, ['--model-keys', keys]);
    expect((await run('delay', priced, 'charged')).status).toBe(200);
    await kill9();
    await start({}, ['--model-keys', keys]);
    expect(replayed(await run('delay', priced, 'charged'))).toBe('true');
    expect(errorOf(await run('delay', priced, 'beyond'))).toEqual(
      said(402, 'insufficient_credits'),
    );
    expect((await run('delay', { ...priced, price_cents: 10 }, 'within')).status).toBe(200);
  });

  test('after the answer: it is replayed byte for byte by the next process, to this body alone', async () => {
    await start();
    const body = { width: 64, height: 64, seed: 3 };
    const first = await run('procedural-image', body, 'kept');
    await kill9();
    await start();
    const again = await run('procedural-image', body, 'kept');
    expect([again.status, again.text, replayed(again)]).toEqual([200, first.text, 'true']);
    const other = await run('procedural-image', { ...body, seed: 4 }, 'kept');
    expect(errorOf(other)).toEqual(said(409, 'invalid_input'));
  });

  test('between run and answer, at any moment: each key then answers once more, and is never stuck', async () => {
    await start();
    for (let round = 0; round < 3; round++) {
      const told = new Map<string, string>();
      const calls = Array.from({ length: 6 }, async (_, i) => {
        const [key, echo] = [`${round}-${i}`, `answer ${round}-${i}`];
        // They end within a few milliseconds of each other, and of the kill.
        const answer = await run('delay', { seconds: 0.04 + i * 0.004, echo }, key).catch(
          () => undefined,
        );
        if (answer?.status === 200) told.set(key, answer.text);
      });
      await new Promise((resolve) => setTimeout(resolve, 60 + round * 13));
      await kill9();
      await Promise.all(calls);
      await start();
      for (let i = 0; i < 6; i++) {
        const [key, echo] = [`${round}-${i}`, `answer ${round}-${i}`];
        const retry = await run('delay', { seconds: 0.04 + i * 0.004, echo }, key);
        expect([key, retry.status, retry.json.echo]).toEqual([key, 200, echo]);
        // An answer the client received is replayed; the model does not run again.
        if (told.has(key)) expect([key, replayed(retry)]).toEqual([key, 'true']);
      }
    }
  });
});

describe('an ordinary stop', () => {
  test('ends running calls with 503 service_unavailable when their time is over, and frees their keys', async () => {
    await start();
    const running = run('delay', { seconds: 600 }, 'stopped').catch(() => undefined);
    await expect
      .poll(async () => (await run('delay', { seconds: 600 }, 'stopped')).status)
      .toBe(409);
    expect(await terminate()).toBe(0);
    const answer = await running;
    expect(answer && errorOf(answer)).toEqual(said(503, 'service_unavailable'));
    await start();
    expect((await run('delay', { seconds: 0 }, 'stopped')).status).toBe(200);
  });
});

describe('a start', () => {
  test('with a keys file that is not there says so, with exit code 2', async () => {
    const { code, stderr } = await runHoldover([
      '--port',
      '0',
      '--model-keys',
      '/nowhere/keys.json',
    ]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--model-keys')]);
  });

  test('the curl commands of docs/model-router.md work', async () => {
    await start();
    const page = await readFile(new URL('../../docs/model-router.md', import.meta.url), 'utf8');
    const commands = [...page.matchAll(/^curl (.*\/v1\/models.*)$/gm)].map(([, rest = '']) => rest);
    expect(commands.length).toBeGreaterThan(0);
    for (const command of commands) {
      const url = /http:\/\/127\.0\.0\.1:8188([^\s']*)/.exec(command)?.[1] ?? '';
      const headers = [...command.matchAll(/-H '([^:]+): ([^']+)'/g)].map(([, n = '', v = '']) => [
        n,
        v,
      ]);
      const body = /-d '([^']*)'/.exec(command)?.[1];
      const init = {
        method: body === undefined ? 'GET' : 'POST',
        headers: headers as [string, string][],
      };
      const answer = await fetch(server.url + url, {
        ...init,
        ...(body !== undefined && { body }),
      });
      await answer.arrayBuffer();
      expect([command, answer.status]).toEqual([command, 200]);
    }
  });
});

describe('limits', () => {
  test('a call that waits for the thread of another is served when that one is given up', async () => {
    await start();
    const body = JSON.stringify({ width: 2048, height: 2048, octaves: 8 });
    const target = '/v1/models/local/procedural-image';
    let wire: Wire | undefined;
    // A 409 shows that the heavy call has begun. A smaller call that comes first takes the key from it.
    const begin = async () => {
      const key = `heavy-${Math.random()}`;
      const headers = [`X-API-Key: ${SECRET_KEY}`, `Idempotency-Key: ${key}`];
      wire = await dial(server.port);
      wire.send(requestText(target, { method: 'POST', headers, body }));
      return (await run('procedural-image', {}, key)).status;
    };
    await expect.poll(begin).toBe(409);
    const waiting = run('digest', { text: 'x' }, `light-${Math.random()}`);
    wire?.reset();
    expect((await waiting).status).toBe(200);
  });

  test('a model that computes too long is ended, its thread with it, and the next call is served', async () => {
    await start({ deadlineMs: 150 });
    const huge = { width: 2048, height: 2048, octaves: 8 };
    const late = await run('procedural-image', huge, 'late');
    expect(errorOf(late)).toEqual(said(504, 'deadline_exceeded'));
    // A thread of its own starts meanwhile.
    const next = async () => (await run('digest', { text: 'x' }, `n${Math.random()}`)).status;
    await expect.poll(next, { timeout: 10_000 }).toBe(200);
  });

  test('calls beyond what may wait for a processor are a 503 service_unavailable', async () => {
    await start({ maxWaiting: 1, inFlight: 50 });
    const paint = (i: number) =>
      run('procedural-image', { width: 1024, height: 1024, seed: i }, `waits-${i}`);
    const answers = await Promise.all([1, 2, 3, 4, 5, 6].map(paint));
    const refused = answers.filter(({ status }) => status !== 200);
    expect(refused.length).toBe(4);
    for (const answer of refused) expect(errorOf(answer)).toEqual(said(503, 'service_unavailable'));
  });
});

test('a key is neither logged nor stored', async () => {
  await start();
  await run('digest', { text: 'x' }, 'digested');
  await run('delay', { seconds: 0 }, 'delayed');
  expect(server.log()).not.toContain(SECRET_KEY);
  await terminate();
  expect(filesWith(dataDir, SECRET_KEY)).toEqual([]);
});
