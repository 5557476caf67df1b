import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { entryOf, pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// Requirement 34, every form in which clients present a key. What a key separates: test/hostile/tenants.test.ts.

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const TOKEN = 'the-token';
const basic = (pair: string): string => `Basic ${Buffer.from(pair).toString('base64')}`;

/** Header or query in which a client may present this key. */
const formsOf = (key: string) => [
  { form: 'X-API-Key', headers: { 'X-API-Key': key }, query: '' },
  { form: 'Authorization: Bearer', headers: { Authorization: `Bearer ${key}` }, query: '' },
  { form: 'Basic, as the password', headers: { Authorization: basic(`any:${key}`) }, query: '' },
  { form: 'Basic, as the user', headers: { Authorization: basic(`${key}:`) }, query: '' },
  { form: '?token=', headers: {}, query: `token=${key}` },
];

type Form = { readonly headers: Record<string, string>; readonly query: string };
const FORMS = formsOf(TOKEN) as readonly (Form & { form: string })[];

const NONE: readonly (Form & { form: string })[] = [
  { form: 'no header at all', headers: {}, query: '' },
  { form: 'an empty Bearer', headers: { Authorization: 'Bearer ' }, query: '' },
  { form: 'a bare Bearer', headers: { Authorization: 'Bearer' }, query: '' },
  { form: 'an empty X-API-Key', headers: { 'X-API-Key': '' }, query: '' },
  { form: 'an empty ?token=', headers: {}, query: 'token=' },
  { form: 'an empty Basic', headers: { Authorization: basic(':') }, query: '' },
];

describe('34: with --local-token', () => {
  const holdover = useHoldover({ args: ['--local-token', TOKEN] });

  test.each(FORMS)('$form opens HTTP and the socket', async ({ headers, query }) => {
    expect((await fetch(`${holdover.url}/queue?${query}`, { headers })).status).toBe(200);
    const socket = await connect(holdover.wsUrl, { headers, query });
    await socket.until((frame) => frame.kind === 'text' && frame.type === 'status');
    await socket.close();
  });

  test('Basic in the URL opens the socket', async () => {
    const socket = new WebSocket(`ws://any:${TOKEN}@127.0.0.1:${holdover.port}/ws`);
    const first = await new Promise((resolve, reject) => {
      socket.once('message', (data: Buffer) => resolve(JSON.parse(data.toString()).type));
      socket.once('error', reject);
    });
    socket.close();
    expect(first).toBe('status');
  });

  test.each([...NONE, ...(formsOf('wrong') as typeof NONE)])(
    '$form (none or wrong) is 401 in JSON, without a redirect, on HTTP and before the upgrade',
    async ({ headers, query }) => {
      for (const path of ['/queue', '/api/history', '/object_info']) {
        const answer = await fetch(`${holdover.url}${path}?${query}`, {
          headers,
          redirect: 'manual',
        });
        expect(answer.status).toBe(401);
        const isHosted = path.startsWith('/api/') && 'X-API-Key' in headers;
        const told = { message: expect.any(String) };
        expect(await answer.json()).toMatchObject(isHosted ? told : { error: told });
      }
      await expect(connect(holdover.wsUrl, { headers, query })).rejects.toThrow('401');
    },
  );
});

describe('34: on the embedded engine without a token', () => {
  const holdover = useHoldover();
  const alice = { 'X-API-Key': 'alice-key' };
  const bob = { 'X-API-Key': 'bob-key' };

  test.each([
    { form: 'X-API-Key', headers: alice, query: '' },
    { form: 'Bearer', headers: { Authorization: 'Bearer alice-key' }, query: '' },
    { form: '?token=', headers: {}, query: '?token=alice-key' },
  ] as const)('the same key is the same user as $form', async ({ headers, query, form }) => {
    const name = `${form.replaceAll(/\W/g, '')}.png`;
    await uploadInput(holdover.url, { bytes: await pngOf(), name }, alice);
    const glue = query === '' ? '?' : `${query}&`;
    const seen = await fetch(`${holdover.url}/view${glue}filename=${name}&type=input`, { headers });
    expect(seen.status).toBe(200);
  });

  test.each(NONE)('$form is the local user', async ({ headers, query }) => {
    await uploadInput(holdover.url, { bytes: await pngOf(), name: 'local.png' });
    const path = `/view?filename=local.png&type=input&${query}`;
    expect((await fetch(holdover.url + path, { headers })).status).toBe(200);
  });

  test('two users may give their prompts the same id', async () => {
    const users = [
      [alice, flat({ color: 347, prefix: 'a' })],
      [bob, flat({ color: 348, prefix: 'b' })],
    ] as const;
    const clientId = 'shared-id';
    const [hers, his] = [
      await connect(holdover.wsUrl, { clientId, headers: alice }),
      await connect(holdover.wsUrl, { clientId, headers: bob }),
    ];
    await Promise.all(
      users.map(([headers, prompt]) =>
        postPrompt(
          holdover.url,
          { prompt, prompt_id: 'same-id', client_id: clientId },
          { headers },
        ),
      ),
    );
    await Promise.all([hers.untilDone('same-id'), his.untilDone('same-id')]);
    const nameOf = async (headers: Record<string, string>) =>
      (await entryOf(holdover.url, 'same-id', headers)).outputs['9'].images[0].filename;
    expect([await nameOf(alice), await nameOf(bob)]).toEqual(['a_00001_.png', 'b_00001_.png']);
    await Promise.all([hers.close(), his.close()]);
  });
});
