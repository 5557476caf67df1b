// deploy/compose.yaml run as processes, with its commands and variables: the files are in a bucket, and nothing is shared.
import { readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { loading } from '../support/graphs/workflows.ts';
import { scrape } from '../support/processes/scrape.ts';
import { startStackLoad } from '../support/processes/stack-load.ts';
import { type Stack, isHealthy, stackMissing, startStack } from '../support/processes/stack.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 90_000 });

const missing = stackMissing();
const CLIENTS = 2;
const STORE_AWAY_MS = 1500;
/** A replica's count of the prompts it accepted. */
const PROMPTS_TAKEN = 'holdover_http_requests_total{method="POST",route="/prompt",outcome="2xx"}';

describe.skipIf(missing !== '')(`the services of deploy/compose.yaml${missing}`, () => {
  let stack: Stack;
  let headers: Record<string, string>;
  beforeAll(async () => {
    stack = await startStack();
    headers = { Authorization: `Bearer ${stack.token}` };
  });
  afterAll(async () => await stack?.dispose());

  test('are healthy by their own checks, and ready', async () => {
    for (const { port, url } of stack.servers) {
      expect(await isHealthy([], { HOLDOVER_PORT: String(port) })).toBe(true);
      const { parts, ...report } = await getJson(`${url}/readyz`, headers);
      expect(report).toMatchObject({ status: 'ready' });
      expect(parts).toMatchObject({
        ledger: { status: 'ok', kind: 'redis' },
        queue: { status: 'ok', kind: 'redis' },
        files: { status: 'ok', kind: 'bucket' },
      });
    }
  });

  test('serve a v1 client with the token, and no other one', async () => {
    const { url, wsUrl } = stack.balancer;
    expect((await fetch(`${url}/queue`)).status).toBe(401);
    const bytes = await pngOf();
    const { name } = await uploadInput(url, { bytes, name: 'in.png' }, headers);
    const socket = await connect(wsUrl, { clientId: 'one', headers });
    const body = { prompt: loading(name, 'stack'), client_id: 'one' };
    const posted = await postPrompt(url, body, { headers });
    await socket.untilDone(posted.body.prompt_id as string);
    await socket.close();
    const view = (query: string, more: Record<string, string> = {}) =>
      fetch(`${url}/view?${query}`, { headers: { ...headers, ...more } });
    const picture = await view('filename=stack_00001_.png&type=output');
    expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png']);
    const part = await view(`filename=${name}&type=input`, { range: 'bytes=8-15' });
    expect(bytes.subarray(8, 16).equals(Buffer.from(await part.arrayBuffer()))).toBe(true);
  });

  test('lose no prompt when one of each is restarted in good order, and nothing accepted when one of each is killed', async () => {
    const load = startStackLoad(stack, 'roller', CLIENTS);
    await load.untilTaken();
    expect(await stack.servers[0]?.terminate()).toBe(0);
    await stack.restartServer(0);
    await untilReplicaIsUsed(stack, 0);
    expect(await stack.workers[0]?.terminate()).toBe(0);
    await stack.restartWorker(0);
    await load.untilTaken();
    await load.expectNoneRefused();

    // Those that were not restarted, and the stores of both.
    const kills = [
      () => stack.servers[1]?.kill9(),
      () => restartLater(stack.redis),
      () => stack.workers[1]?.kill9(),
      () => restartLater(stack.bucket),
    ];
    for (const kill of kills) {
      await kill();
      await load.untilTaken();
    }
    await load.stopPosting();
    await load.expectAllDone();
  });

  test('share no folder, and show no secret', async () => {
    const names = (await Promise.all(stack.dirs.map((dir) => readdir(dir)))).flat();
    expect(names.filter((name) => /^(blobs|userdata)/.test(name))).toEqual([]);
    for (const secret of ['password-of-redis', 'secret-of-the-bucket', 'token-of-the-stack'])
      expect(stack.log()).not.toContain(secret);
  });
});

/** The balancer takes it for healthy again: with the other one stopped there would be none left otherwise. */
async function untilReplicaIsUsed(stack: Stack, index: number): Promise<void> {
  const replica = stack.servers[index];
  const headers = { Authorization: `Bearer ${stack.token}` };
  const taken = async () => (await scrape(replica?.url ?? '', headers)).of(PROMPTS_TAKEN);
  await expect.poll(taken, { timeout: 60_000, interval: 100 }).toBeGreaterThan(0);
}

/** Calls meet it away. */
async function restartLater(store: Stack['redis']): Promise<void> {
  await store.kill9();
  await delay(STORE_AWAY_MS);
  await store.restart();
}
