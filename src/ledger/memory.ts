import type { Ledger } from './ledger.ts';
import { openSqliteLedger } from './sqlite.ts';

/** A ledger that is gone with the process, for tests: the same store without a file. */
export function createMemoryLedger(): Ledger {
  return openSqliteLedger({ path: ':memory:' });
}
