import path from 'node:path';
import { onTestFinished } from 'vitest';
import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { jobsSuite } from '../jobs.suite.ts';
import { TINY_WORKFLOWS as workflows, startEngine } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

jobsSuite('the embedded engine', async () => {
  const dataDir = await tempFolder('data');
  const ledger = openSqliteLedger({ path: path.join(dataDir, 'holdover.db') });
  onTestFinished(() => ledger.close());
  return { api: await startEngine({ ledger, dataDir }), workflows };
});
