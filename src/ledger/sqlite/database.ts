import type { DatabaseSyncInstance } from '@photostructure/sqlite';

/** An open SQLite database. */
export type Database = DatabaseSyncInstance;
