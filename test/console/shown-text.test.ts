import { describe, expect, test } from 'vitest';
import { jsonWithoutCredentials } from '../../src/console/traffic/shown-body.ts';
import { createShowText, isSecretName } from '../../src/console/traffic/shown-text.ts';
import { SecretRedactor } from '../../src/observability/secret-redactor.ts';

describe('JSON', () => {
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

test.each(['\\', 'api_key', 'a.', '"password":"', '"x":"', '-', 'token='])(
  'a text of %j takes time in proportion to its length',
  (part) => {
    const showText = createShowText(new SecretRedactor());
    const started = process.cpuUsage();
    showText(`/?bearer ${part.repeat(128 * 1024)}`);
    expect(process.cpuUsage(started).user / 1000).toBeLessThan(2000);
  },
);
