import type { LedgerIdentity } from '../identity.ts';
import type { Database } from './database.ts';
import type { Writer } from './writer.ts';

/** The row of the table `identity`. */
export function sqliteIdentity(db: Database, writer: Writer): LedgerIdentity {
  const select = db.prepare('SELECT value FROM identity WHERE name = ?');
  const insert = db.prepare('INSERT OR IGNORE INTO identity (name, value) VALUES (?, ?)');
  const valueOf = (name: string): string | undefined =>
    (select.get(name) as { value: string } | undefined)?.value;
  return {
    id: valueOf('id') ?? '',
    storedIn: 'folder',
    predatesFolders: valueOf('predates_folders') !== undefined,
    folder: async () => valueOf('folder'),
    tie: (folderId) =>
      writer.write(() => {
        insert.run('folder', folderId);
        return valueOf('folder') ?? folderId;
      }),
  };
}
