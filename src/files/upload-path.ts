import { posix } from 'node:path';
import type { FileRow } from '../ledger/ledger.ts';

/**
 * The path an upload is known by upstream. Below `input/` whatever it is: v2 places files of other
 * roots. Only inputs may be found by their name.
 */
export function uploadPathOf({
  type,
  subfolder,
  filename,
}: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): string {
  return posix.join('input', type === 'input' ? '' : type, subfolder, filename);
}
