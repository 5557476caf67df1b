/** Ties a ledger to the one data folder that has the files it records. */
export type LedgerIdentity = {
  /** Created with the ledger. A ledger with another id has other records. */
  readonly id: string;
  /** `folder`: the ledger is a file in the data folder. `service`: it is in Redis. */
  readonly storedIn: 'folder' | 'service';
  /** The id of the data folder; `undefined` for a new ledger. */
  folder(): Promise<string | undefined>;
  /** Ties the ledger to a data folder unless it has one; returns the id of the folder that it has. */
  tie(folderId: string): Promise<string>;
  /**
   * Returns the secret of all processes that share the ledger; stores the proposal if there is none. Absent when the
   * data folder has the secret.
   */
  secret?(proposal: Buffer): Promise<Buffer>;
};
