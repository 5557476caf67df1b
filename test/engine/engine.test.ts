import path from 'node:path';
import { onTestFinished } from 'vitest';
import { openSqliteLedger } from '../../src/ledger/sqlite.ts';
import { jobsSuite } from '../jobs.suite.ts';
import { graph } from '../support/jobs.ts';
import { startEngine, tempDir } from './open.ts';

/** The suite's workflows in the tiny node library. */
const workflows = {
  saving: (seed: number) =>
    graph({ 1: ['Number', { value: seed }], 2: ['Save', { value: ['1', 0], prefix: 'suite' }] }),
  endless: (seed: number) => graph({ 1: ['Spin', { seed }], 2: ['Sink', { value: ['1', 0] }] }),
  failing: () =>
    graph({
      1: ['Number', { value: 1 }],
      2: ['Fail', { image: ['1', 0], message: 'on purpose' }],
      3: ['Sink', { value: ['2', 0] }],
    }),
  reading: (file: Parameters<typeof graph>[0][string][1][string]) =>
    graph({ 1: ['Load', { file }], 2: ['Save', { value: ['1', 0], prefix: 'read' }] }),
  invalid: () => graph({ 1: ['Number', { value: 1 }] }),
};

jobsSuite('the embedded engine', async () => ({ api: await startEngine(), workflows }));

jobsSuite('the embedded engine over SQLite', async () => {
  const dataDir = await tempDir();
  const ledger = openSqliteLedger({ path: path.join(dataDir, 'holdover.db') });
  onTestFinished(() => ledger.close());
  return { api: await startEngine({ ledger, dataDir }), workflows };
});
