// The clients that still need v1: the command `report`, and its page.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { runCommandHere } from '../support/processes/run-command.ts';
import { redisMissing, startRedis } from '../support/processes/redis.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const KEY = 'ann-very-secret-key';
const ann = { 'X-API-Key': KEY, 'User-Agent': 'ann-script/1.0' };
const bob = { 'X-API-Key': 'bob' };
const plain = { 'User-Agent': 'plain-script/2.0' };

let dataDir: string;
let holdover: Holdover;
beforeAll(async () => {
  dataDir = await runFolder('report');
  holdover = await startHoldover({ dataDir });
  const socket = await connect(holdover.wsUrl, { clientId: 'ann-tab', headers: ann });
  const { body } = await postPrompt(
    holdover.url,
    { prompt: flat(), client_id: 'ann-tab' },
    { headers: ann },
  );
  await socket.untilDone(body.prompt_id);
  await getJson(`${holdover.url}/history/${body.prompt_id}?token=${KEY}`, ann);
  await getJson(`${holdover.url}/api/history/${body.prompt_id}`, ann);
  await socket.close();
  for (const path of ['/object_info', '/nowhere/at/all', '/api/v2/jobs', '/holdover', '/healthz']) {
    await fetch(holdover.url + path, { headers: plain });
  }
  for (const id of ['tab-7', '', 'x'.repeat(129)])
    await fetch(`${holdover.url}/queue?clientId=${id}`, { headers: bob });
  await fetch(`${holdover.url}/api/jobs`, { headers: { ...plain, 'Holdover-Page': '1' } });
});
afterAll(() => holdover.dispose());

const report = async () => {
  const { stdout } = await runCommandHere(['report', '--json', '--data-dir', dataDir]);
  return JSON.parse(stdout).clients as any[];
};
const callsOf = (client: any) =>
  Object.fromEntries(client.routes.map(({ route, calls }: any) => [route, calls]));

test('the page shows the callers their own clients, counted to this moment', async () => {
  const mine = (await getJson(`${holdover.url}/holdover/report.json`, ann)).clients;
  expect(mine.map(({ agent }: any) => agent)).toEqual(['ann-script/1.0']);
  expect(callsOf(mine[0])).toEqual({
    'GET /ws': 1,
    'POST /prompt': 1,
    'GET /history/:id': 2,
  });
  const others = (await getJson(`${holdover.url}/holdover/report.json`)).clients;
  expect(others.map(({ agent }: any) => agent)).toEqual(['plain-script/2.0']);
  expect(callsOf(others[0])).toEqual({ 'GET /object_info': 1 });
});

test('a client id in the query of a call is noted, unless no client may have it', async () => {
  const { clients } = await getJson(`${holdover.url}/holdover/report.json`, bob);
  expect(clients.map(({ client_ids: ids, calls }: any) => [ids, calls])).toEqual([[['tab-7'], 3]]);
});

test('while the server runs, the command lists exactly the calls that were made, by client', async () => {
  await expect.poll(report, { timeout: 30_000, interval: 500 }).toHaveLength(3);
  const clients = await report();
  const [hers] = clients.filter(({ agent }) => agent === 'ann-script/1.0');
  expect(hers).toMatchObject({
    user: expect.stringMatching(/^[0-9a-f]{32}$/),
    client_ids: ['ann-tab'],
    calls: 4,
    verdict: 'ready with changes',
    because: [
      expect.stringContaining('GET /history/:id: a record that stays'),
      expect.stringContaining('GET /ws: node-level events'),
    ],
  });
  expect(hers.routes.find(({ route }: any) => route === 'POST /prompt')).toMatchObject({
    calls: 1,
    v2: 'POST /api/v2/jobs',
  });
  const [other] = clients.filter(({ agent }) => agent === 'plain-script/2.0');
  expect(other).toMatchObject({ user: 'local', verdict: 'needs v1' });
});

test('after a kill -9 and after a stop it reads the same, as text too, and no key is in it', async () => {
  const before = await report();
  await holdover.kill9();
  expect(await report()).toEqual(before);
  holdover = await startHoldover({ dataDir });
  await fetch(`${holdover.url}/queue`, { headers: plain });
  expect(await holdover.terminate()).toBe(0);
  const after = await report();
  expect(callsOf(after.find(({ agent }) => agent === 'plain-script/2.0'))).toEqual({
    'GET /object_info': 1,
    'GET /queue': 1,
  });
  const { code, stdout } = await runHoldover(['report', '--data-dir', dataDir]);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /plain-script\/2\.0\n {2}user local\n[^]*needs v1\n {4}- GET \/object_info/,
  );
  expect(stdout).toMatch(/POST \/prompt +1 .* POST \/api\/v2\/jobs\n/);
  expect(stdout + JSON.stringify(after)).not.toContain(KEY);
});

test('without a ledger, and with a wrong flag, it says so in one line', async () => {
  const nowhere = await runCommandHere(['report', '--data-dir', join(dataDir, 'nowhere')]);
  expect(nowhere).toMatchObject({ code: 1, stdout: '' });
  expect(nowhere.stderr).toMatch(/^error: there is no ledger .*nowhere.*\n$/);
  expect(await runCommandHere(['report', '--jsn'])).toMatchObject({ code: 2, stdout: '' });
});

test('an empty variable counts as absent, as it does for the server', async () => {
  const absent = { HOLDOVER_LEDGER: '', HOLDOVER_DATA_DIR: '' };
  const { code, stderr } = await runCommandHere(['report', '--data-dir', dataDir], absent);
  expect([code, stderr]).toEqual([0, '']);
});

test('of a database whose files have another ledger it names the flag', async () => {
  const former = await tempFolder('report');
  await openSqliteLedger({ path: join(former, 'holdover.db') }).close();
  expect(await runCommandHere(['report', '--data-dir', former])).toMatchObject({ code: 0 });
  await writeFile(join(former, 'ledger.id'), 'that of a Redis');
  const { code, stdout, stderr } = await runCommandHere(['report', '--data-dir', former]);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^error: the files in .* have another ledger: name it with --ledger\n$/);
});

describe('Holdover’s own commands are no clients', () => {
  const reported = async (dir: string) => {
    const { code, stdout } = await runCommandHere(['report', '--json', '--data-dir', dir]);
    expect(code).toBe(0);
    return JSON.parse(stdout).clients.map(({ agent }: any) => agent);
  };

  test('a traced program leaves the counts of its ledger alone', async () => {
    const dir = await tempFolder('own');
    const code = 'fetch(process.env.HOLDOVER_URL + "/queue")';
    const traced = ['trace', '--data-dir', dir, '--', process.execPath, '-e', code];
    expect((await runHoldover(traced)).stderr).toMatch(/GET \/queue +200/);
    expect(await reported(dir)).toEqual([]);
  });

  test('nor is a server in front of another one, which asks that for its node classes', async () => {
    const behind = await startHoldover({ upstream: 'embedded' });
    const front = await startHoldover({ upstream: 'embedded', args: ['--upstream', behind.url] });
    await getJson(`${front.url}/object_info`);
    await postPrompt(front.url, { prompt: flat() });
    await front.dispose();
    await behind.terminate();
    expect(behind.log()).toContain('/object_info');
    expect(await reported(behind.dataDir)).toEqual([]);
    await behind.dispose();
  });
});

const missing = redisMissing();

test.skipIf(missing !== '')(`it reads a ledger in Redis${missing}`, async () => {
  const redis = await startRedis();
  const env = { HOLDOVER_LEDGER: redis.url };
  const shared = await startHoldover({ upstream: 'embedded', env });
  await fetch(`${shared.url}/queue`, { headers: plain });
  await shared.terminate();
  const { stdout } = await runCommandHere(['report', '--json'], env);
  await Promise.all([shared.dispose(), redis.dispose()]);
  expect(JSON.parse(stdout).clients.map(callsOf)).toEqual([{ 'GET /queue': 1 }]);
});
