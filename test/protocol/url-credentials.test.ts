import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isCredentialMember,
  loginIn,
  withoutCredentials,
  withoutCredentialsIn,
  withoutLogin,
} from '../../src/protocol/url-credentials.ts';

const SECRET = 'kn-Qz7Vx93';

describe('what logs in is what is removed', () => {
  test.each(['/ws?Token=x', '/ws?tokens=x', '/ws??token=x', '/ws?a;token=x', '/token=x'])(
    '%s logs no user in',
    (url) => expect(loginIn(url)).toBeUndefined(),
  );

  test('for any way to write the name and the value', () => {
    const hex = (char: string) => `%${(char.codePointAt(0) ?? 0).toString(16)}`;
    const spelled = (text: string) =>
      fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((isHex) =>
        text
          .split('')
          .map((char, at) => (isHex[at] ? hex(char) : char))
          .join(''),
      );
    const other = fc.stringMatching(/^[a-z]{0,3}(=[a-z%+]{0,3})?$/);
    fc.assert(
      fc.property(
        fc.array(other),
        spelled('token'),
        spelled(SECRET),
        fc.array(other),
        (before, name, value, after) => {
          const query = [...before, `${name}=${value}`, ...after].join('&');
          expect(loginIn(`/ws?${query}`)).toBe(SECRET);
          const shown = withoutCredentials(`/ws?${query}`);
          expect(shown).not.toContain(value);
          expect(loginIn(shown)).toBe('[removed]');
          expect(loginIn(`/ws${withoutLogin(`?${query}`)}`)).toBeUndefined();
        },
      ),
    );
  });
});

test.each([
  `/signed/view?filename=a.png&expires=1&signature=${SECRET}`,
  `/signed/view?filename=a.png&s%69gnature=${SECRET}`,
  `https://s3.example/b/k?X-Amz-Credential=${SECRET}&X-Amz-Date=1`,
  `https://s3.example/b/k?X-Amz-Signature=${SECRET}`,
  `https://s3.example/b/k?X-Amz-Security-Token=${SECRET}`,
  `https://storage.example/o?X-Goog-Signature=${SECRET}`,
  `https://blob.example/c?sp=r&sig=${SECRET}`,
  `https://cdn.example/c?Policy=${SECRET}&Key-Pair-Id=1`,
  `/x?api_key=${SECRET}`,
  `/x?apikey=${SECRET}`,
  `/x?key=${SECRET}`,
  `/x?access_token=${SECRET}`,
  `/x?token[]=${SECRET}`,
  `/x?users[0].token=${SECRET}`,
  `/x?user[password]=${SECRET}`,
  `/x?api_key_comfy_org=${SECRET}`,
  `/x?auth_token_comfy_org=${SECRET}`,
  `/x?client_secret=${SECRET}`,
  `/x?password=${SECRET}`,
  `http://user:${SECRET}@127.0.0.1/x`,
  `http://${SECRET}@127.0.0.1/x`,
  `/x?from=http%3A%2F%2Fu%3A${SECRET}%40h%2F`,
  `/x?from=https%3A%2F%2Fh%2Fk%3Fsignature%3D${SECRET}`,
])('%s is shown without what lets anybody in', (url) => {
  expect(withoutCredentials(url)).not.toContain(SECRET);
  expect(decodeURIComponent(withoutCredentials(url))).toContain('[removed]');
});

test.each([
  '/view?filename=token.png&subfolder=keys&type=output',
  '/history?max_items=5&offset=0',
  '/ws?clientId=0123abcd',
  '/api/v2/jobs?limit=5&cursor=abc',
  '/view?token',
  '/x?token=',
  '/queue',
  'http://127.0.0.1:8188/queue',
])('%s is shown as it is', (url) => expect(withoutCredentials(url)).toBe(url));

test.each([
  `connect to redis://:${SECRET}@h:6379 failed`,
  `GET https://s3.example/b?X-Amz-Signature=${SECRET} answered 403`,
  `request /ws?%74oken=${SECRET} failed`,
  `Authorization: Bearer ${SECRET}`,
  `authorization=Basic ${SECRET}`,
  `X-API-Key: ${SECRET}`,
  `Cookie: session=${SECRET}`,
  `sent with Bearer ${SECRET}.`,
  `Referer: http://127.0.0.1:8188/?token=${SECRET}`,
  JSON.stringify({ api_key_comfy_org: SECRET }),
  JSON.stringify({
    extra: JSON.stringify({ auth_token_comfy_org: SECRET, api_key_service_org: SECRET }),
  }),
  JSON.stringify({ headers: { authorization: `Bearer ${SECRET}`, cookie: SECRET } }),
  JSON.stringify({ err: { message: `GET http://u:${SECRET}@h/?a="b"` } }),
  JSON.stringify({ api_key_comfy_org: `it's "quoted" \\ ${SECRET}` }),
  JSON.stringify({ extra: JSON.stringify({ password: `it's "quoted" \\ ${SECRET}`, a: 1 }) }),
  `GET /x?extra=${encodeURIComponent(JSON.stringify({ api_key_comfy_org: SECRET }))} answered 400`,
])('a text that quotes one is cleaned: %s', (text) => {
  expect(withoutCredentialsIn(text)).not.toContain(SECRET);
});

test.each([
  JSON.stringify({ level: 30, cookie: false, authorization: null, api_key: 5, url: '/x?y=1' }),
  JSON.stringify({ err: { stack: 'Error: no token\n    at f (/a/b.js?x:1:2)' }, password: '' }),
  JSON.stringify({ msg: 'the secret of http://127.0.0.1:8188/queue', token_count: 5 }),
])('a line of the log stays JSON, and what is no secret stays: %s', (line) => {
  expect(JSON.parse(withoutCredentialsIn(line))).toEqual(JSON.parse(line));
});

test.each([
  ['api_key_comfy_org', true],
  ['auth_token_comfy_org', true],
  ['api_key_service_org', true],
  ['authorization', true],
  ['token', true],
  ['password', true],
  ['apiKey', true],
  ['X-Api-Key', true],
  ['my api_key', false],
  ['client_id', false],
  ['extra_pnginfo', false],
  ['preview_method', false],
  ['tokens', false],
])('%s names a credential: %s', (name, expected) => {
  expect(isCredentialMember(name)).toBe(expected);
});

test('the name of a member takes time in proportion to its length', () => {
  const started = process.cpuUsage();
  expect(isCredentialMember(`${'api_key'.repeat(32 * 1024)}!`)).toBe(false);
  expect(isCredentialMember('api_key'.repeat(32 * 1024))).toBe(true);
  expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
});

test.each([
  ['backslashes', '\\'],
  ['one word', 'api_key'],
  ['short words', 'a.'],
  ['slashes', '(/'],
  ['dashes', '-'],
  ['quotes', '"password":"'],
])('a text of %s takes time in proportion to its length', (_name, part) => {
  const text = `/?bearer ${part.repeat(256 * 1024)}`;
  const started = process.cpuUsage();
  withoutCredentialsIn(text);
  // Time that grows with the square would be minutes.
  expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
});

test.each([
  ['as it is', (address: string) => address],
  ['encoded', encodeURIComponent],
])(
  'addresses inside addresses, %s, are removed where they are too deep to be read',
  (_name, write) => {
    // Each level read twice would be 2^40 times.
    let target = `/x?token=${SECRET}`;
    for (let level = 0; level < 40; level++) {
      target = `http://h/x?u=${write(target)}`;
    }
    expect(withoutCredentials(target)).not.toContain(SECRET);
    expect(withoutCredentialsIn(`GET ${target} failed`)).toContain('removed');
  },
);

test('an address inside two others is shown without its credential', () => {
  const inner = encodeURIComponent(`http://h/z?signature=${SECRET}&z=1`);
  const url = withoutCredentials(`/x?u=${encodeURIComponent(`http://h/y?u=${inner}`)}`);
  expect(url).not.toContain(SECRET);
  expect(decodeURIComponent(decodeURIComponent(url))).toContain(
    'http://h/z?signature=[removed]&z=1',
  );
});
