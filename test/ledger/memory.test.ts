import { expect, test } from 'vitest';
import { createMemoryLedger } from '../support/app/memory-ledger.ts';
import { ledgerSuite, prompt } from './ledger.suite.ts';

ledgerSuite('memory', createMemoryLedger);

test('two memory ledgers share nothing', async () => {
  const [one, other] = [createMemoryLedger(), createMemoryLedger()];
  await one.prompts.insert(prompt('a'));
  expect(await other.prompts.live()).toEqual([]);
  await Promise.all([one.close(), other.close()]);
});
