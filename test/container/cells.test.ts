// Two cells behind HAProxy, as docs/scaling.md sets them up: each key has its cell.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { formatOf } from '../support/clients/client-helpers.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Balancer, hasBalancer, startCellBalancer } from '../support/processes/balancer.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const missing = redisMissing() || (hasBalancer() ? '' : ' (NOT RUN: there is no haproxy here)');
const KEYS = ['ann', 'ben', 'cat', 'dan', 'a b:c+d/%'];
const OPEN = { HOLDOVER_LISTEN: '0.0.0.0', HOLDOVER_ALLOW_INSECURE_BIND: '1' };

describe.skipIf(missing !== '')(`two cells behind HAProxy${missing}`, () => {
  let redis: readonly RedisServer[] = [];
  /** The servers of each cell: two of the first, one of the second. */
  let cells: readonly (readonly Holdover[])[] = [];
  let balancer: Balancer;
  beforeAll(async () => {
    const port = await freePort();
    redis = await Promise.all([startRedis(), startRedis()]);
    const start = async (cell: number): Promise<Holdover[]> => {
      const publicUrl = `http://127.0.0.1:${port}/cell${cell}`;
      const args = ['--ledger', redis[cell]?.url ?? '', '--public-url', publicUrl];
      const first = await startHoldover({ upstream: 'embedded', args, env: OPEN });
      if (cell === 1) return [first];
      const { dataDir } = first;
      return [first, await startHoldover({ upstream: 'embedded', args, env: OPEN, dataDir })];
    };
    const [zero, one] = await Promise.all([start(0), start(1)]);
    cells = [zero, one];
    balancer = await startCellBalancer(port, [
      zero.map((server) => server.port),
      one.map((server) => server.port),
    ]);
  });
  afterAll(async () => {
    await balancer?.close();
    for (const server of cells.flat()) await server.dispose();
    for (const one of redis) await one.dispose();
  });

  /** Runs a prompt of the owner of the key, to its last frame. */
  async function run(headers: Record<string, string>): Promise<string> {
    const socket = await connect(balancer.wsUrl, { headers });
    const body = { prompt: flat(), client_id: 'test-client' };
    const answer = await postPrompt(balancer.url, body, { headers });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    await socket.untilDone(answer.body.prompt_id);
    await socket.close();
    return answer.body.prompt_id;
  }

  const historyAt = async (url: string, headers: Record<string, string>): Promise<string[]> =>
    Object.keys(await getJson(`${url}/history`, headers));

  test('a key comes to the same cell in each form, with all servers of it, and to no other', async () => {
    const used = new Set<number>();
    for (const key of KEYS) {
      const headers = { Authorization: `Bearer ${key}` };
      const promptId = await run(headers);
      const here = await Promise.all(
        cells.map((servers) => Promise.all(servers.map(({ url }) => historyAt(url, headers)))),
      );
      const cell = here.findIndex(([first]) => first?.includes(promptId));
      for (const known of here[cell] ?? []) expect(known).toContain(promptId);
      expect(here[1 - cell]?.flat()).toEqual([]);
      used.add(cell);
      const basic = (text: string) => ({
        Authorization: `Basic ${Buffer.from(text).toString('base64')}`,
      });
      const forms = [
        { 'X-API-Key': key, Authorization: 'Bearer of-another' },
        ...(key.includes(':') ? [basic(key)] : [basic(`${key}:`), basic(`:${key}`)]),
      ];
      for (const form of forms) expect(await historyAt(balancer.url, form)).toContain(promptId);
    }
    expect([...used].toSorted((a, b) => a - b)).toEqual([0, 1]);
  });

  test('a key in the address comes to the same cell', async () => {
    for (const key of KEYS.slice(0, 4)) {
      const address = `${balancer.url}/history?token=${encodeURIComponent(key)}`;
      expect(Object.keys(await getJson(address))).toEqual(
        await historyAt(balancer.url, { 'X-API-Key': key }),
      );
    }
  });

  test('a signed link leads to the cell that made it', async () => {
    for (const key of KEYS.slice(0, 4)) {
      const headers = { 'X-API-Key': key };
      const [entry] = Object.values<any>(await getJson(`${balancer.url}/history`, headers));
      const [file] = Object.values<any>(entry.outputs)[0].images;
      const view = `${balancer.url}/api/view?${new URLSearchParams(file)}`;
      const answer = await fetch(view, { headers, redirect: 'manual' });
      const link = answer.headers.get('location') ?? '';
      expect(link).toMatch(new RegExp(`^${balancer.url}/cell[01]/`));
      const bytes = await (await fetch(link)).arrayBuffer();
      expect(await formatOf(bytes)).toMatch(/^png/);
    }
  });

  test('callers without a key are one user, in one cell', async () => {
    const promptId = await run({});
    expect(await historyAt(balancer.url, {})).toContain(promptId);
    expect(await historyAt(cells[1]?.[0]?.url ?? '', {})).toEqual([]);
  });
});
