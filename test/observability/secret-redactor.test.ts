import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { SecretRedactor } from '../../src/observability/secret-redactor.ts';

const newKey = (bytes: number): string => randomBytes(bytes).toString('hex');

test('known secrets of every length are removed, beside each other and inside each other', () => {
  const lengths = Array.from({ length: 60 }, (_, i) => i + 6);
  const keys = lengths.map((length) => newKey(length).slice(0, length));
  const secrets = new SecretRedactor();
  for (const key of keys) secrets.add(key);
  for (const key of keys) {
    expect(secrets.redact(`a ${key} b`)).toBe('a [removed] b');
    expect(secrets.redact(`${key}${keys[0]}`)).not.toContain(keys[0]);
    expect(secrets.redact(key.slice(0, 5))).toBe(key.slice(0, 5));
  }
  secrets.add(`${keys[50]}-longer`);
  expect(secrets.redact(`${keys[50]}-longer`)).toBe('[removed]');
  expect(
    secrets.redactedJson(
      { [`${keys[0]}`]: 1, text: `"${keys[9]}"`, word: keys[8] },
      new Set(['word']),
    ),
  ).toBe(JSON.stringify({ [`${keys[0]}`]: 1, text: '"[removed]"', word: keys[8] }));
});

test('the first half of a long key is removed, too', () => {
  const secrets = new SecretRedactor();
  const key = newKey(1000);
  secrets.add(key);
  expect(secrets.redact(`a ${key.slice(0, 960)}`)).toBe('a [removed]');
});

test('the memory for keys has a limit in bytes: the latest keys are known', () => {
  const secrets = new SecretRedactor(['the-key-of-the-operator']);
  const keys = Array.from({ length: 1000 }, () => newKey(6 * 1024));
  for (const key of keys) secrets.add(key);
  expect(secrets.redact(`${keys[0]}`)).toBe(keys[0]);
  expect(secrets.redact(`${keys.at(-1)} the-key-of-the-operator`)).toBe('[removed] [removed]');
});

test('a thousand keys that end unlike a long text cost one reading of it', () => {
  const secrets = new SecretRedactor();
  for (let i = 0; i < 1000; i++) secrets.add(`${'a'.repeat(500 + i)}b`);
  expect(secrets.redact(`${'a'.repeat(400_000)}.`)).toBe('[removed].');
});
