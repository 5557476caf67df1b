// Accept rows into Holdover's own ledger.
import { NEW_PROMPT } from '../../../src/ledger/columns.ts';
import { join } from 'node:path';
import type { PromptRow } from '../../../src/ledger/ledger.ts';
import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { answer, ready } from './serve.ts';

const ledger = openSqliteLedger({ path: join(process.argv[2] ?? '', 'bench.db') });
const graphJson = JSON.stringify({ text: 'x'.repeat(900) });
let next = 0;

answer(async ({ lanes, forMs }: { readonly lanes: number; readonly forMs: number }) => {
  const startedAt = performance.now();
  let rows = 0;
  async function lane(): Promise<void> {
    while (performance.now() - startedAt < forMs) {
      await ledger.prompts.insert(rowOf(`key-${next++}`));
      rows++;
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane));
  return { rows, ms: performance.now() - startedAt };
});
ready();

function rowOf(key: string): PromptRow {
  return {
    key,
    user: 'local',
    promptId: key,
    jobId: null,
    number: next,
    clientId: null,
    createdAtMs: Date.now(),
    graphJson,
    extraDataJson: '{}',
    targetsJson: '[]',
    state: 'submitting',
    intentJson: '{}',
    ...NEW_PROMPT,
  };
}
