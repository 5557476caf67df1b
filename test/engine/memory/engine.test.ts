import path from 'node:path';
import { onTestFinished } from 'vitest';
import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { jobsSuite } from '../jobs.suite.ts';
import { TINY_WORKFLOWS as workflows, startEngine, tempDir } from './open.ts';

jobsSuite('the embedded engine', async () => {
  const dataDir = await tempDir();
  const ledger = openSqliteLedger({ path: path.join(dataDir, 'holdover.db') });
  onTestFinished(() => ledger.close());
  return { api: await startEngine({ ledger, dataDir }), workflows };
});
