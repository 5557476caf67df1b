import type { AssetRow } from '../ledger/ledger.ts';

/** The job id of imported files: no job made them, a v1 server had them before. */
export const IMPORTED = 'imported';

/** The properties of a file that is imported from a v1 server. */
type ImportedFile = Omit<AssetRow, 'tagsJson' | 'expiresAtMs' | 'jobId'>;

/** The record of an imported file: it never expires, and as an output it counts for v1's file counter. */
export function importedAsset(file: ImportedFile): AssetRow {
  return { ...file, tagsJson: null, expiresAtMs: null, jobId: IMPORTED };
}

/** True when a file was imported from a v1 server. An upload cannot claim this. */
export function isImported({ jobId }: Pick<AssetRow, 'jobId'>): boolean {
  return jobId === IMPORTED;
}
