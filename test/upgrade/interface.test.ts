// Names that operators and clients rely on, compared with the files in `interface/`. They hold the state of
// commit a89695e and every addition since. After an addition that is meant:
//   npx vitest run --project embedded --dir test test/upgrade/interface -u
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { OPTIONS } from '../../src/config/flags.ts';
import { packageVersion } from '../../src/config/version.ts';
import { type V2RouteOptions } from '../../src/v2/reply.ts';
import { v2Routes } from '../../src/v2/routes.ts';
import { V1_ROUTES } from '../../src/migration/v1-routes.ts';
import { runHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** One of each route that no table of the source holds. */
const OTHER_PATHS = [
  '/',
  '/holdover',
  '/healthz',
  '/readyz',
  '/metrics',
  '/ws',
  '/api/v2/health',
  '/v1/models',
  '/v2/models',
  '/v1/models/local/digest',
  '/v1/models/local/digest/openapi.json',
  '/nothing/is/here',
];

const server = useHoldover({ upstream: 'embedded' });

async function expectUnchanged(name: string, lines: readonly string[]): Promise<void> {
  await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(`interface/${name}.txt`);
}

test('--help of every command', async () => {
  const commands = ['backup', 'check', 'convert', 'import', 'report', 'restore', 'trace', 'worker'];
  const helps = await Promise.all(
    [[], ...commands.map((name) => [name])].map(async (words) => {
      const { code, stdout } = await runHoldover([...words, '--help']);
      expect(code).toBe(0);
      return [`$ ${['holdover', ...words, '--help'].join(' ')}`, stdout];
    }),
  );
  await expectUnchanged('help', helps.flat());
});

test('settings: flags, environment names, values and defaults', async () => {
  const lines = OPTIONS.map((option) =>
    [
      option.flags,
      option.envVar ?? '-',
      `default ${JSON.stringify(option.defaultValue) ?? 'none'}`,
      ...(option.argChoices ? [option.argChoices.join('|')] : []),
      ...(option.hidden ? ['hidden'] : []),
    ].join('  '),
  );
  await expectUnchanged('settings', lines);
});

test('routes of v1, v2 and the model router', async () => {
  const v1 = Object.keys(V1_ROUTES);
  const v2 = v2Routes(NO_PARTS).map(({ method, path }) => `${method} /api/v2${path}`);
  await expectUnchanged('routes', [...v1, ...v2].toSorted());
  const paths = [...v1, ...v2].map((route) => route.split(' ')[1] ?? '');
  await expectUnchanged('answers', await answersOf([...new Set(paths)].toSorted()));
});

/** The routes are listed without serving any. */
const NO_PARTS = {} as V2RouteOptions;

async function answersOf(patterns: readonly string[]): Promise<readonly string[]> {
  const lines = [];
  for (const pattern of [...patterns, ...OTHER_PATHS]) {
    const second = /^\/(api|v1|v2\/models)/.test(pattern) ? [] : [`/api${pattern}`];
    for (const path of [pattern, ...second])
      lines.push(`${path}  ${(await statusesOf(path)).join(' ')}`);
  }
  return lines;
}

/** The statuses of a call without a query or a useful body; one after the other, as some change files. */
async function statusesOf(pattern: string): Promise<readonly string[]> {
  const path = pattern.replaceAll(/:\w+/g, 'none');
  const headers: HeadersInit = /^\/v[12]\/models/.test(path) ? { 'X-API-Key': 'any' } : {};
  const statuses = [];
  for (const method of METHODS) {
    const answer = await fetch(`${server.url}${path}`, { method, headers, redirect: 'manual' });
    await answer.arrayBuffer();
    statuses.push(`${method} ${answer.status}`);
  }
  return statuses;
}

test('metrics: names, types and labels', async () => {
  const client = await connect(server.wsUrl);
  const { body } = await postPrompt(server.url, { prompt: flat(), client_id: 'test-client' });
  await client.untilDone(body.prompt_id);
  await client.close();
  await fetch(`${server.url}/metrics`).then((answer) => answer.text());
  const exposition = await fetch(`${server.url}/metrics`).then((answer) => answer.text());
  const lines = [...exposition.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
    ([, name = '', type = '']) => {
      const samples = exposition.matchAll(new RegExp(`^${name}(?:_bucket)?\\{(.*)\\} `, 'gm'));
      const pairs = [...samples].flatMap(([, text = '']) => [...text.matchAll(/(\w+)="/g)]);
      const labels = [...new Set(pairs.map(([, label = '']) => label))].toSorted();
      return [name, type, ...(name.startsWith('holdover_') ? labels : [])].join(' ');
    },
  );
  await expectUnchanged('metrics', lines.toSorted());
});

test('log lines keep the fields that programs read', async () => {
  const foreign = { method: 'GET', path: '/queue', headers: { Host: 'foreign.test' } };
  await once(request({ port: server.port, host: '127.0.0.1', ...foreign }).end(), 'response');
  await expect.poll(() => lineOf({ event: 'request.refused' })).toBeDefined();
  const names = ['level', 'time', 'msg'];
  const call = ['id', 'user', 'method', 'url', 'status', 'ms', 'v2'];
  const posted = lineOf({ method: 'POST', url: '/prompt', status: 200 });
  expect(Object.keys(posted ?? {})).toEqual(expect.arrayContaining([...names, ...call]));
  const started = Object.keys(lineOf({ version: packageVersion() }) ?? {});
  expect(started).toEqual(expect.arrayContaining([...names, 'port', 'dataDir', 'upstream']));
  const refused = Object.keys(lineOf({ event: 'request.refused' }) ?? {});
  expect(refused).toEqual(expect.arrayContaining([...names, 'status', 'rule', 'method', 'host']));
});

/** A line of the server's log that holds these. */
function lineOf(parts: Record<string, unknown>): Record<string, unknown> | undefined {
  const lines = server.log().trimEnd().split('\n');
  return lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find((line) => Object.entries(parts).every(([name, value]) => line[name] === value));
}

/** The documentation of commit a89695e gives these for alerts. */
const EVENTS = [
  'limits.small_memory',
  'prompt.resent',
  'request.refused',
  'socket.undelivered_dropped',
  'storage.lost',
  'submission.late_job_cancelled',
  'uploads.not_kept',
  'upstream.answer_too_large',
  'upstream.call_not_passed',
  'upstream.cancel_ignored',
  'upstream.event_too_large',
  'upstream.headers_too_large',
  'upstream.redirect_refused',
];

test('log events keep their names, in the source and in the documentation', () => {
  const source = textsBelow('src', '.ts');
  const pages = readFileSync(`${ROOT}README.md`, 'utf8') + textsBelow('docs', '.md');
  expect(EVENTS.filter((event) => !source.includes(`'${event}'`))).toEqual([]);
  expect(EVENTS.filter((event) => !pages.includes(event))).toEqual([]);
});

function textsBelow(folder: string, suffix: string): string {
  return readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(suffix))
    .map((name) => readFileSync(`${ROOT}${folder}/${name}`, 'utf8'))
    .join('\n');
}
