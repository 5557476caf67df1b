/** Ties a ledger to the one data directory that holds the files it has recorded. */
export type LedgerIdentity = {
  /** Created with the ledger; a different id means different records. */
  readonly id: string;
  /** `folder`: the ledger is a file in the data directory. */
  readonly storedIn: 'folder' | 'service';
  /**
   * The ledger was written before ledgers stored their folder id: the files beside it are its own.
   */
  readonly predatesFolders: boolean;
  /** Id of the data directory; `undefined` for a ledger that is new. */
  folder(): Promise<string | undefined>;
  /** Ties the ledger to a data directory unless it has one; returns the id of the one it has. */
  tie(folderId: string): Promise<string>;
  /** The secret of all processes that share the ledger; absent when the data directory has it. */
  secret?(proposal: Buffer): Promise<Buffer>;
};
