import type { AssetRow } from '../ledger/ledger.ts';

/** Stands in place of a job's id: none of ours made these files, a v1 server had them before. */
export const IMPORTED = 'imported';

/** What is known of a file that is taken over from a v1 server. */
type ImportedFile = Omit<AssetRow, 'tagsJson' | 'expiresAtMs' | 'jobId'>;

/** The record of an imported file: it never expires, and as an output it counts for v1's file counter. */
export function importedAsset(file: ImportedFile): AssetRow {
  return { ...file, tagsJson: null, expiresAtMs: null, jobId: IMPORTED };
}

/** Whether a file was taken over from a v1 server; nobody can upload one that says so. */
export function isImported({ jobId }: Pick<AssetRow, 'jobId'>): boolean {
  return jobId === IMPORTED;
}
