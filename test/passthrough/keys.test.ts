// Whose key goes along with a call that is passed through, and who may call at all.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RawAnswer, requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Echoed, type Origin, echo, startOrigin } from './origin.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

const BAD = 'unknown-key-3f9a';
const OWN = 'key-of-alice-77b1';
const FIXED = 'key-of-the-server-c04d';
const TOKEN = 'token-of-the-door-5e2f';

let origin: Origin;
let dir: string;
/** Servers in front of it: with each caller's own key, with one for all, and with that one behind a local token. */
let holdovers: { readonly own: Holdover; readonly fixed: Holdover; readonly behindToken: Holdover };
beforeAll(async () => {
  origin = await startOrigin({ refusedKeys: [BAD] });
  origin.on('/', echo);
  dir = await runFolder('key');
  await writeFile(join(dir, 'key'), FIXED);
  const start = (...args: readonly string[]) =>
    startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url, ...args] });
  const key = ['--upstream-key', join(dir, 'key')];
  holdovers = {
    own: await start(),
    fixed: await start(...key),
    behindToken: await start(...key, '--local-token', TOKEN),
  };
});
afterAll(async () => {
  for (const holdover of Object.values(holdovers)) await holdover.dispose();
  await origin.close();
});

async function expectSilent(holdover: Holdover): Promise<void> {
  await expectHealthy(holdover);
  for (const key of [OWN, BAD, FIXED, TOKEN]) expect(holdover.log()).not.toContain(key);
}

const basic = (text: string) => `Authorization: Basic ${Buffer.from(text).toString('base64')}`;

/** The credentials that reached the service, under any name. */
function sentKeys({ rawHeaders }: Echoed): string[] {
  return rawHeaders.flatMap((value, i) =>
    /^(authorization|x-api-key|cookie)$/i.test(rawHeaders[i - 1] ?? '') ? [value] : [],
  );
}

const asIs = (query: string): string => query;

/** Both APIs are let in the same way. */
const DOORS = [
  ['/api/v2/jobs', (body: string): string => JSON.parse(body).error.code, () => '?part=1'],
  ['/v1/models/p/m', (body: string): string => JSON.parse(body).error_type, asIs],
  ['/proxy/p/x', (body: string): string => JSON.parse(body).error_type, asIs],
] as const;

async function ask(
  holdover: Holdover,
  target: string,
  headers: readonly string[],
): Promise<RawAnswer> {
  return say(holdover.port, requestText(target, { headers }));
}

describe.each(DOORS)('each caller’s own key: %s', (path, codeOf, beside) => {
  afterEach(() => expectSilent(holdovers.own));

  test.each<[string, string, string[]]>([
    ['as X-API-Key', '', [`X-API-Key: ${OWN}`]],
    ['as Bearer', '', [`Authorization: Bearer ${OWN}`]],
    [
      'as X-API-Key, which wins over Bearer',
      '',
      ['Authorization: Bearer other', `X-API-Key: ${OWN}`],
    ],
    ['as the password of Basic', '', [basic(`:${OWN}`)]],
    ['as ?token=', `?a=1&token=${OWN}`, []],
    ['as a header, and as a ?token=', `?token=${OWN}&a=1`, [`X-API-Key: ${OWN}`]],
  ])('presented %s goes out as Bearer, and nowhere else', async (_form, query, headers) => {
    const answer = await ask(holdovers.own, path + query, headers);
    expect(answer.status).toBe(200);
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sentKeys(sent)).toEqual([`Bearer ${OWN}`]);
    expect(sent.url).not.toMatch(/token|other|key-of/);
    expect(JSON.stringify(sent).split(OWN)).toHaveLength(2);
  });

  test('a ?token= beside it is another key to v2, and anything to a partner', async () => {
    const query = '?token=sig%31&part=1';
    const answer = await ask(holdovers.own, path + query, [`X-API-Key: ${OWN}`]);
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sentKeys(sent)).toEqual([`Bearer ${OWN}`]);
    expect(sent.url).toBe(path + beside(query));
  });

  test('no key is presented when the caller has none', async () => {
    const headers = ['Authorization: Bearer ', 'Cookie: a=b'];
    const answer = await ask(holdovers.own, path, headers);
    expect(sentKeys(JSON.parse(answer.body) as Echoed)).toEqual([]);
  });

  test('one the service refuses is 401 unauthorized, and the call stays here', async () => {
    const before = origin.heard.length;
    const answer = await ask(holdovers.own, path, [`X-API-Key: ${BAD}`]);
    expect(answer.status).toBe(401);
    expect(codeOf(answer.body)).toBe('unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(origin.heard.length).toBe(before);
  });
});

describe.each(DOORS)('one key for all callers: %s', (path, codeOf, beside) => {
  test('it goes along with calls that have no other, never with those that have', async () => {
    const { fixed } = holdovers;
    const answer = await ask(fixed, path, []);
    expect(sentKeys(JSON.parse(answer.body) as Echoed)).toEqual([`Bearer ${FIXED}`]);
    const before = origin.heard.length;
    for (const headers of [[`X-API-Key: ${OWN}`], [`Authorization: Bearer ${OWN}`]]) {
      const refused = await ask(fixed, path, headers);
      expect(refused.status).toBe(403);
      expect(codeOf(refused.body)).toBe('forbidden');
      expect(refused.body).toMatch(/share one account/);
      expect(refused.raw).not.toContain(FIXED);
    }
    expect((await ask(fixed, `${path}?token=${OWN}`, [])).status).toBe(403);
    expect(origin.heard.length).toBe(before);
    await expectSilent(fixed);
  });

  test('behind a local token, it goes along for its holders only', async () => {
    const { behindToken } = holdovers;
    for (const headers of [[`X-API-Key: ${TOKEN}`], [`Authorization: Bearer ${TOKEN}`]]) {
      const answer = await ask(behindToken, path, headers);
      const sent = JSON.parse(answer.body) as Echoed;
      expect(sentKeys(sent)).toEqual([`Bearer ${FIXED}`]);
      expect(JSON.stringify(sent)).not.toContain(TOKEN);
    }
    for (const headers of [[], ['X-API-Key: other'], [`X-API-Key: ${TOKEN}`]]) {
      const byQuery = await ask(behindToken, `${path}?token=${TOKEN}`, headers);
      expect(byQuery.status).toBe(200);
      expect(JSON.stringify(JSON.parse(byQuery.body))).not.toContain(TOKEN);
    }
    const signed = await ask(behindToken, `${path}?token=sig&part=1`, [`X-API-Key: ${TOKEN}`]);
    expect((JSON.parse(signed.body) as Echoed).url).toBe(path + beside('?token=sig&part=1'));
    const before = origin.heard.length;
    for (const headers of [[], [`X-API-Key: ${FIXED}`]]) {
      const refused = await ask(behindToken, path, headers);
      expect([refused.status, codeOf(refused.body)]).toEqual([401, 'unauthorized']);
    }
    expect(origin.heard.length).toBe(before);
    await expectSilent(behindToken);
  });
});
