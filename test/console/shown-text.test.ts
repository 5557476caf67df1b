import { describe, expect, test } from 'vitest';
import { jsonWithoutCredentials } from '../../src/console/traffic/shown-json.ts';
import {
  createShowText,
  isSecretName,
  lineText,
  shownHeaders,
} from '../../src/console/traffic/shown-text.ts';
import { createSecretRedactor } from '../../src/observability/secret-redactor.ts';

const SECRET = 's3cr3t-0123456789';

describe('JSON', () => {
  test.each([
    { api_key: SECRET },
    { a: [{ Password: 12345 }], b: { client_secret: { inside: SECRET } } },
    { text: JSON.stringify({ text: JSON.stringify({ auth_token: [SECRET] }) }) },
    { 'Comfy.ApiKey': SECRET },
  ])('%j is shown without its credentials', (value) => {
    const shown = jsonWithoutCredentials(JSON.stringify(value)) ?? '';
    expect(shown).toContain('[removed]');
    expect(shown).not.toMatch(/s3cr3t|12345/);
    expect(JSON.parse(shown)).toBeTypeOf('object');
  });

  test.each([
    '{ "seed": 18446744073709551615,  "tokens": 5 }',
    '{"password":"","authorization":null,"cookie":false}',
    '[1,"{broken"]',
  ])('%s stays byte for byte', (text) => expect(jsonWithoutCredentials(text)).toBe(text));

  test('numbers that fit no double stay exact beside a removed member', () => {
    expect(jsonWithoutCredentials('{"seed":18446744073709551615,"secret":"x"}')).toBe(
      '{"seed":18446744073709551615,"secret":"[removed]"}',
    );
  });

  test('a name that hides behind an escape or a repeated member is found', () => {
    const text = `{"a":{"\\u0061pi_key":"${SECRET}"},"a":1}`;
    expect(jsonWithoutCredentials(text)).toBe('{"a":1}');
    expect(jsonWithoutCredentials('no JSON')).toBeUndefined();
  });
});

test.each([
  ['api_key_comfy_org', true],
  ['X-Amz-Security-Token', true],
  ['refresh_token', true],
  ['private-key', true],
  ['access_keys', true],
  ['max_tokens', false],
  ['token_count', false],
  ['key', false],
  ['secretary', false],
  ['client_id', false],
])('%s names a credential: %s', (name, expected) => expect(isSecretName(name)).toBe(expected));

test('headers that log in are removed, others and addresses in them stay', () => {
  const shown = shownHeaders({
    cookie: SECRET,
    'x-session': SECRET,
    'set-cookie': [SECRET, SECRET],
    'sec-websocket-protocol': SECRET,
    'sec-websocket-key': 'made up',
    location: `/signed?signature=${SECRET}&a=1`,
    'content-length': 5,
  });
  expect(JSON.stringify(shown)).not.toContain(SECRET);
  expect(shown).toContainEqual(['location', '/signed?signature=[removed]&a=1']);
  expect(shown).toContainEqual(['sec-websocket-key', 'made up']);
  expect(shown).toContainEqual(['content-length', '5']);
});

test('a text is cut only after a key in it was removed', () => {
  const secrets = createSecretRedactor();
  secrets.add(SECRET);
  const text = lineText(createShowText(secrets), `${'x'.repeat(155)}${SECRET}`);
  expect(text).toBe(`${'x'.repeat(155)}[remo`);
});

test.each(['\\', 'api_key', 'a.', '"password":"', '"x":"', '-', 'token='])(
  'a text of %j takes time in proportion to its length',
  (part) => {
    const showText = createShowText(createSecretRedactor());
    const started = process.cpuUsage();
    showText(`/?bearer ${part.repeat(128 * 1024)}`);
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
  },
);
