import type { AssetRow } from '../ledger/ledger.ts';

/** The job id of imported files: no job made them, since a v1 server had them before. */
export const IMPORTED = 'imported';

/** The members of a file that is imported from a v1 server. */
type ImportedFile = Omit<AssetRow, 'tagsJson' | 'expiresAtMs' | 'jobId'>;

/**
 * Returns the record of an imported file. It never expires, and an imported output counts for v1's
 * file counter.
 */
export function importedAsset(file: ImportedFile): AssetRow {
  return { ...file, tagsJson: null, expiresAtMs: null, jobId: IMPORTED };
}

/** True when a file was imported from a v1 server. An upload cannot claim this job id. */
export function isImported({ jobId }: AssetRow): boolean {
  return jobId === IMPORTED;
}
