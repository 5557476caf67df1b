import { expect, test } from 'vitest';
import type { Graph } from '../../../src/protocol/v2.ts';
import { type Exchange, error } from '../../support/upstreams/hostile-v2.ts';
import { value } from '../../support/app/jobs.ts';
import { CALLER, openRemote } from './open.ts';

const WORKFLOW = { '1': { class_type: 'A', inputs: {} } } as Graph;
const SECRETS = { api_key_comfy_org: 'the-key', auth_token_comfy_org: 'the-token' };

/** As a server whose `extra_data` is closed. */
function withoutTokens(exchange: Exchange): unknown {
  const body = JSON.parse(exchange.body.toString()) as { extra_data?: object };
  if (!('auth_token_comfy_org' in (body.extra_data ?? {}))) return exchange.honestly();
  const message = "'extra_data' accepts only the 'api_key_comfy_org' field.";
  return exchange.json(400, error('invalid_request', message));
}

test('the token of a logged-in browser is left out where it is refused, from then on', async () => {
  const { upstream, remote } = await openRemote();
  upstream.always('submit', withoutTokens);
  for (let i = 0; i < 2; i++) {
    value(await remote.submit(CALLER, { workflow: WORKFLOW, extraData: SECRETS }));
  }
  const sent = upstream
    .requests('submit')
    .map(({ body }) => JSON.parse(body.toString()).extra_data);
  const { auth_token_comfy_org: _, ...rest } = SECRETS;
  expect(sent).toEqual([SECRETS, rest, rest]);
  const keys = upstream.requests('submit').map(({ headers }) => headers['idempotency-key']);
  expect(keys[0]).toBe(keys[1]);
});

test('both are sent to a service that takes both', async () => {
  const { upstream, remote } = await openRemote();
  value(await remote.submit(CALLER, { workflow: WORKFLOW, extraData: SECRETS }));
  const [request] = upstream.requests('submit');
  expect(JSON.parse(request?.body.toString() ?? '').extra_data).toEqual(SECRETS);
});
