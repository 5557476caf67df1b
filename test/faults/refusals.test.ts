// Refusals of the upstream, as clients of either v1 server receive them.
import { FormData, fetch } from 'undici';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorSummary } from '../support/golden/error-summary.ts';
import { type Hook, error, fault } from '../support/upstreams/hostile-v2.ts';
import { finish, staysRunning } from '../support/upstreams/job-scripts.ts';
import { flat } from '../support/graphs/workflows.ts';
import { type Client, type FaultSetup, useSharedSetup } from './open.ts';

const setup = useSharedSetup();

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const notFoundPage: Hook = ({ res }) => {
  res.writeHead(404, { 'Content-Type': 'text/plain' });
  res.end('404 page not found\n');
};

/** Until the test is over. */
function always(
  client: Client,
  route: Parameters<ReturnType<FaultSetup['upstream']['of']>['always']>[0],
  hook: Hook,
): void {
  const theirs = setup.upstream.of(client.key);
  theirs.always(route, hook);
  onTestFinished(() => theirs.always(route, (exchange) => exchange.honestly()));
}

/** `/view` of the first file of a prompt that ran. */
async function viewOf(client: Client): Promise<string> {
  const { promptId } = await client.post();
  const { outputs } = await client.ended(promptId);
  const [file] = (Object.values(outputs)[0] as { images: Record<string, string>[] }).images;
  return `/view?${new URLSearchParams(file)}`;
}

describe('of a file', () => {
  // The client is a hosted one, and the hosted service's document has no 503 for that.
  test.each([
    ['/view', 503],
    ['/api/view', 500],
  ])('a pause that %s cannot wait out is %i', async (route, expected) => {
    const client = await setup.client();
    const view = (await viewOf(client)).replace('/view', route);
    always(client, 'content', fault.refuse(429, 'rate_limited', { 'Retry-After': '5' }));
    const { status, headers } = await client.ask(view);
    expect([status, headers.get('retry-after')]).toEqual([expected, '5']);
  });

  test.each([
    ['/upload/image', 'rate_limited', [503, '5']],
    ['/api/upload/image', 'subscription_inactive', [429, '5']],
    ['/upload/image', 'inactive_subscription', [429, '5']],
  ])('and so it is for an upload: %s %s', async (path, code, expected) => {
    const client = await setup.client();
    always(client, 'upload', fault.refuse(429, code, { 'Retry-After': '5' }));
    const body = new FormData();
    body.set('image', new Blob([`not seen before: ${code}`]), 'x.png');
    const url = `${setup.holdover().url}${path}`;
    const { status, headers } = await fetch(url, { method: 'POST', body, headers: client.headers });
    expect([status, headers.get('retry-after')]).toEqual(expected);
  });

  test('what an upstream says of its inside goes no further', async () => {
    const client = await setup.client();
    const view = await viewOf(client);
    const inside = 'connect ECONNREFUSED http://10.1.2.3:8188/view /srv/secret';
    always(client, 'content', ({ json }) => json(500, error('upstream_error', inside)));
    const { status, text } = await client.ask(view);
    expect(status).toBe(502);
    expect(text).not.toMatch(/10\.1\.2\.3|secret/);
  });

  test('a link relative to what was asked for leads there', async () => {
    const client = await setup.client();
    const view = (await viewOf(client)).replace('/view', '/api/view');
    always(client, 'content', ({ res }) => {
      res.writeHead(302, { Location: '../../blob/abc?sig=1' });
      res.end();
    });
    const { status, headers } = await client.ask(view);
    expect(status).toBe(302);
    expect(new URL(headers.get('location') ?? '').pathname).toBe('/api/v2/blob/abc');
  });
});

describe('of a prompt, as the server its client was written for says it', () => {
  const inactive = fault.refuse(429, 'subscription_inactive');
  test.each([
    ['no credits', fault.refuse(402, 'insufficient_credits'), 402, 402, 'insufficient_credits'],
    ['no subscription', inactive, 429, 429, 'subscription_inactive'],
    ['a key it refuses', fault.refuse(401, 'unauthorized'), 401, 401, 'unauthorized'],
    ['a failure inside', fault.refuse(500, 'upstream_error'), 500, 500, 'submit_outcome_unknown'],
    ['a workflow it refuses', fault.refuse(422, 'invalid_body'), 400, 400, 'invalid_prompt'],
  ] as const)('%s', async (_what, hook, local, hosted, type) => {
    const client = await setup.client();
    always(client, 'submit', hook);
    const body = { prompt: flat({ prefix: 'refused' }) };
    const answers = [await client.say('/prompt', body), await client.say('/api/prompt', body)];
    const gists = answers.map(({ status, text }) =>
      errorSummary({ status, text, headers: { 'content-type': 'application/json' } }),
    );
    expect(gists).toEqual([`${local} refusal ${type}`, `${hosted} hosted refusal ${type}`]);
  });
});

describe('of a job', () => {
  test('a page for a moment says nothing of it', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    const { promptId, marker } = await client.post();
    await expect.poll(() => client.outline(promptId)).toContain('execution_start');
    always(client, 'get', fault.html(404));
    always(client, 'events', fault.html(404));
    setup.proxy.cut('rst');
    await sleep(800);
    expect((await client.queue()).running).toEqual([promptId]);
    for (const route of ['get', 'events'] as const)
      setup.upstream.of(client.key).always(route, (exchange) => exchange.honestly());
    const [job] = client.jobs(marker);
    if (job) finish(setup.upstream, job);
    expect((await client.ended(promptId)).status.status_str).toBe('success');
  });

  test('410 is the end of one that is no more', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    const { promptId } = await client.post();
    await expect.poll(() => client.outline(promptId)).toContain('execution_start');
    always(client, 'get', fault.refuse(410, 'gone'));
    always(client, 'events', fault.refuse(410, 'gone'));
    setup.proxy.cut('rst');
    expect((await client.ended(promptId)).status.status_str).toBe('error');
  });

  test('a page in place of an answer to a cancel is no answer', async () => {
    const client = await setup.client();
    setup.upstream.script(staysRunning, client.key);
    const { promptId } = await client.post();
    await expect.poll(() => client.outline(promptId)).toContain('execution_start');
    setup.upstream.of(client.key).once('cancel', notFoundPage);
    await client.say('/interrupt', { prompt_id: promptId });
    const { status } = await client.ended(promptId);
    expect(status.messages.at(-1)[0]).toBe('execution_interrupted');
  });
});

test('history is forgotten under either id', async () => {
  const client = await setup.client();
  const [own, others] = [await client.post({ more: { prompt_id: 'own-id' } }), await client.post()];
  await Promise.all([client.ended('own-id'), client.ended(others.promptId)]);
  const [job] = client.jobs(own.marker);
  expect(job?.id).not.toBe('own-id');
  await client.say('/history', { delete: [job?.id] });
  expect(Object.keys((await client.ask('/history')).json)).toEqual([others.promptId]);
});
