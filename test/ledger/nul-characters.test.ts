import { afterAll, expect, test } from 'vitest';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';

const ledger = openSqliteLedger({ path: ':memory:' });
afterAll(() => ledger.close());

test('a text with a NUL character is refused, because the database would cut it', async () => {
  await ledger.settings.merge('local', { a: '1' });
  await expect(ledger.settings.merge('local', { 'a\0b': '2' })).rejects.toThrow(/NUL/);
  await expect(ledger.prompts.find('local', 'a\0b')).rejects.toThrow(/NUL/);
  expect(await ledger.settings.all('local')).toEqual({ a: '1' });
  await ledger.settings.merge('local', { c: '3' });
  expect(await ledger.settings.all('local')).toEqual({ a: '1', c: '3' });
});
