// Writes history entries into a data directory, as finished prompts leave them.
import { NEW_PROMPT } from '../../../src/ledger/columns.ts';
import { join } from 'node:path';
import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { smallGraph } from '../job.ts';
import { answer, ready } from './serve.ts';

answer(async ({ dataDir, entries }: { readonly dataDir: string; readonly entries: number }) => {
  const ledger = openSqliteLedger({ path: join(dataDir, 'holdover.db') });
  const graphJson = smallGraph();
  const entryJson = JSON.stringify({ prompt: [0, 'id', JSON.parse(graphJson), {}, ['9']] });
  const writes = Array.from({ length: entries }, (_, i) => writeOne(`entry-${i}`, i));
  await Promise.all(writes);
  await ledger.close();
  return { entries };

  async function writeOne(key: string, number: number): Promise<void> {
    const row = { key, promptId: key, number, graphJson, user: 'local', jobId: key };
    const none = { clientId: null, intentJson: '{}', extraDataJson: '{}' };
    const rest = { createdAtMs: number, targetsJson: '["9"]', state: 'live' as const };
    await ledger.prompts.insert({ ...NEW_PROMPT, ...row, ...none, ...rest });
    const times = { startedAtMs: number, endedAtMs: number + 1 };
    await ledger.prompts.finish(key, { entryJson, statusWord: 'completed', ...times });
  }
});
ready();
