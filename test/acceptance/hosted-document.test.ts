// The hosted service's public document, held against what Holdover serves and docs/differences.md names.
import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { V1_ROUTES } from '../../src/migration/v1-routes.ts';
import { call } from '../support/clients/raw-call.ts';
import { uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { REFUSED_CALLS } from '../support/clients/hostile-calls.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const PATHS: Readonly<Record<string, Record<string, { responses: object }>>> = parse(
  read('fixtures/openapi/openapi-cloud.yaml'),
).paths;
const METHODS = new Set(['get', 'post', 'put', 'delete', 'patch']);
const DOCUMENTED = Object.entries(PATHS).flatMap(([path, item]) =>
  Object.entries(item)
    .filter(([method]) => METHODS.has(method))
    .map(([method, { responses }]) => ({ method: method.toUpperCase(), path, responses })),
);

const rowOf = (name: string): string =>
  read('docs/differences.md')
    .split('\n')
    .find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
/** Texts in code marks. */
const marked = (text: string): string[] =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** A route by its method and the form of its path, whatever its parameters are called. */
const shapeOf = (method: string, path: string): string =>
  `${method} ${path.replaceAll(/\{\w+\}|:\w+/g, '*').replace(/^\/api(?=\/)/, '')}`;
const SERVED = new Set(
  Object.keys(V1_ROUTES).map((name) => {
    const [method = '', path = ''] = name.split(' ');
    return shapeOf(method, path);
  }),
);

describe('routes of the public document', () => {
  const isServed = ({ method, path }: { method: string; path: string }) =>
    SERVED.has(shapeOf(method, path));

  test.each(DOCUMENTED.filter((route) => !isServed(route)))(
    '$method $path is not served, and row hosted-routes names it',
    ({ path }) => expect(marked(rowOf('hosted-routes'))).toContain(path),
  );

  test('that the row names are none that are served', () => {
    const served = new Set(DOCUMENTED.filter(isServed).map(({ path }) => path));
    const named = marked(rowOf('hosted-routes')).filter((text) => text.startsWith('/api/'));
    expect(named.filter((path) => served.has(path) || PATHS[path] === undefined)).toEqual([]);
  });
});

/** The documented answers of a call, of the route with the longest match. */
function responsesTo(method: string, target: string): object | undefined {
  const [path = ''] = target.split('?', 1);
  const found = DOCUMENTED.filter((route) => {
    const pattern = route.path.replaceAll(/\{\w+\}/g, '[^/]+');
    return route.method === method && new RegExp(`^${pattern}$`).test(path);
  });
  return found.toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)[0]
    ?.responses;
}

describe('statuses of calls in hosted form', () => {
  const server = useHoldover();
  const headers = { 'X-API-Key': '' };

  test('of refusals: documented, or named in row hosted-statuses', () => {
    const named = new Set(['400', ...marked(rowOf('hosted-statuses'))]);
    const found = REFUSED_CALLS.flatMap(([{ method, path }, , summary]) => {
      const status = summary.slice(0, 3);
      const responses = responsesTo(method, path);
      return (responses && status in responses) || named.has(status)
        ? []
        : [[method, path, status]];
    });
    expect(found).toEqual([]);
  });

  test('of calls that succeed are documented', async () => {
    await uploadInput(server.url, { bytes: Buffer.from('bytes'), name: 'a.txt' });
    const { body } = await postPrompt(
      server.url,
      { prompt: flat() },
      { headers, path: '/api/prompt' },
    );
    const id = body.prompt_id as string;
    const status = async () =>
      (await getJson(`${server.url}/api/job/${id}/status`, headers)).status;
    await expect.poll(status, { timeout: 30_000 }).toBe('success');
    const names =
      'prompt object_info features workflow_templates global_subgraphs experiment/models ' +
      `history_v2 history_v2/${id} jobs jobs/${id} job/${id}/status queue ` +
      'system_stats user view?type=input&filename=a.txt';
    const calls = names.split(' ').map((path) => ['GET', `/api/${path}`, undefined] as const);
    const changes = [
      ['POST', '/api/queue', '{"clear":true}'],
      ['POST', '/api/interrupt', undefined],
      ['POST', '/api/userdata/workflows%2Fa.json', '{}'],
      ['GET', '/api/userdata?dir=workflows/', undefined],
      ['GET', '/api/userdata/workflows%2Fa.json', undefined],
      ['DELETE', '/api/userdata/workflows%2Fa.json', undefined],
      ['POST', '/api/history', '{"clear":true}'],
    ] as const;
    const found = [];
    for (const [method, path, sent] of [...calls, ...changes]) {
      const more = sent === undefined ? {} : { body: sent };
      const answer = await call(server.url, path, { method, headers, ...more });
      const responses = responsesTo(method, path) ?? {};
      if (answer.status >= 400 || !(answer.status in responses)) found.push([path, answer.status]);
    }
    expect(found).toEqual([]);
  });
});
