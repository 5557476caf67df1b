import type { Ledger } from '../../../src/ledger/ledger.ts';
import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';

/** A ledger that is gone with the process: the same store without a file. */
export function createMemoryLedger(): Ledger {
  return openSqliteLedger({ path: ':memory:' });
}
