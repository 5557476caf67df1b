// Whose key goes along with a call that is passed through, and who may call at all.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RawAnswer, requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Echoed, type Origin, echo, startOrigin } from './origin.ts';

const BAD = 'unknown-key-3f9a';
const OWN = 'key-of-alice-77b1';
const FIXED = 'key-of-the-server-c04d';
const TOKEN = 'token-of-the-door-5e2f';

let origin: Origin;
beforeAll(async () => {
  origin = await startOrigin({ refusedKeys: [BAD] });
  origin.on('/', echo);
});
afterAll(() => origin.close());

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
  let holdover: Holdover;
  beforeAll(async () => {
    holdover = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
  });
  afterAll(() => holdover.dispose());
  afterEach(async () => {
    await expectHealthy(holdover);
    for (const key of [OWN, BAD]) expect(holdover.log()).not.toContain(key);
  });

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
    const answer = await ask(holdover, path + query, headers);
    expect(answer.status).toBe(200);
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sentKeys(sent)).toEqual([`Bearer ${OWN}`]);
    expect(sent.url).not.toMatch(/token|other|key-of/);
    expect(JSON.stringify(sent).split(OWN)).toHaveLength(2);
  });

  test('a ?token= beside it is another key to v2, and anything to a partner', async () => {
    const query = '?token=sig%31&part=1';
    const answer = await ask(holdover, path + query, [`X-API-Key: ${OWN}`]);
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sentKeys(sent)).toEqual([`Bearer ${OWN}`]);
    expect(sent.url).toBe(path + beside(query));
  });

  test('no key is presented when the caller has none', async () => {
    const headers = ['Authorization: Bearer ', 'Cookie: a=b'];
    const answer = await ask(holdover, path, headers);
    expect(sentKeys(JSON.parse(answer.body) as Echoed)).toEqual([]);
  });

  test('one the service refuses is 401 unauthorized, and the call stays here', async () => {
    const before = origin.heard.length;
    const answer = await ask(holdover, path, [`X-API-Key: ${BAD}`]);
    expect(answer.status).toBe(401);
    expect(codeOf(answer.body)).toBe('unauthorized');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
    expect(origin.heard.length).toBe(before);
  });
});

describe.each(DOORS)('one key for all callers: %s', (path, codeOf, beside) => {
  let dir: string;
  const holdovers: Holdover[] = [];
  async function withKey(...args: readonly string[]): Promise<Holdover> {
    const key = ['--upstream', origin.url, '--upstream-key', join(dir, 'key')];
    const holdover = await startHoldover({ upstream: 'embedded', args: [...key, ...args] });
    holdovers.push(holdover);
    return holdover;
  }
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'holdover-key-'));
    await writeFile(join(dir, 'key'), FIXED);
  });
  afterAll(async () => {
    for (const holdover of holdovers) await holdover.dispose();
    await rm(dir, { recursive: true });
  });
  afterEach(async () => {
    for (const holdover of holdovers) {
      await expectHealthy(holdover);
      for (const key of [FIXED, TOKEN]) expect(holdover.log()).not.toContain(key);
    }
  });

  test('it goes along with calls that have no other, never with those that have', async () => {
    const holdover = await withKey();
    const answer = await ask(holdover, path, []);
    expect(sentKeys(JSON.parse(answer.body) as Echoed)).toEqual([`Bearer ${FIXED}`]);
    const before = origin.heard.length;
    for (const headers of [[`X-API-Key: ${OWN}`], [`Authorization: Bearer ${OWN}`]]) {
      const refused = await ask(holdover, path, headers);
      expect(refused.status).toBe(403);
      expect(codeOf(refused.body)).toBe('forbidden');
      expect(refused.body).toMatch(/share one account/);
      expect(refused.raw).not.toContain(FIXED);
    }
    expect((await ask(holdover, `${path}?token=${OWN}`, [])).status).toBe(403);
    expect(origin.heard.length).toBe(before);
  });

  test('behind a local token, it goes along for its holders only', async () => {
    const holdover = await withKey('--local-token', TOKEN);
    for (const headers of [[`X-API-Key: ${TOKEN}`], [`Authorization: Bearer ${TOKEN}`]]) {
      const answer = await ask(holdover, path, headers);
      const sent = JSON.parse(answer.body) as Echoed;
      expect(sentKeys(sent)).toEqual([`Bearer ${FIXED}`]);
      expect(JSON.stringify(sent)).not.toContain(TOKEN);
    }
    for (const headers of [[], ['X-API-Key: other'], [`X-API-Key: ${TOKEN}`]]) {
      const byQuery = await ask(holdover, `${path}?token=${TOKEN}`, headers);
      expect(byQuery.status).toBe(200);
      expect(JSON.stringify(JSON.parse(byQuery.body))).not.toContain(TOKEN);
    }
    const signed = await ask(holdover, `${path}?token=sig&part=1`, [`X-API-Key: ${TOKEN}`]);
    expect((JSON.parse(signed.body) as Echoed).url).toBe(path + beside('?token=sig&part=1'));
    const before = origin.heard.length;
    for (const headers of [[], [`X-API-Key: ${FIXED}`]]) {
      const refused = await ask(holdover, path, headers);
      expect([refused.status, codeOf(refused.body)]).toEqual([401, 'unauthorized']);
    }
    expect(origin.heard.length).toBe(before);
  });
});
