import { InvalidSetting } from '../../config/invalid-setting.ts';
import { join } from 'node:path';
import type { Flags } from '../../config/flags.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { safeName } from '../../files/safe-name.ts';
import { type FileToImport, bytesOf, isSameFile } from './files.ts';
import { type Scan, scan } from './scan.ts';
import { megabytes } from '../printable-name.ts';

/** How much is taken. */
export type ImportLimits = Pick<Flags, 'maxUploadSize' | 'diskBudget' | 'userdataQuota'>;

/** The import is refused before it begins; the message is printed. */
export class ImportRefused extends InvalidSetting {}

const MEBIBYTE = 1024 * 1024;
/** The share of the budget to leave free; with less, new results soon remove each other. */
const MIN_FREE_SHARE = 0.2;

/** Files of `input` and `output`, and what is to be said of the rest. */
export type FilesToImport = Omit<Scan, 'found'> & { readonly found: readonly FileToImport[] };

export async function scanFiles(
  source: string,
  { maxUploadSize }: ImportLimits,
): Promise<FilesToImport> {
  const isKeptName = (name: string): boolean => safeName(name) !== undefined;
  const rules = { maxBytes: Math.round(maxUploadSize * MEBIBYTE), isKeptName };
  const input = await scan(join(source, 'input'), 'input', rules);
  const output = await scan(join(source, 'output'), 'output', rules);
  return {
    found: [
      ...input.found.map((file) => ({ ...file, type: 'input' as const })),
      ...output.found.map((file) => ({ ...file, type: 'output' as const })),
    ],
    leftOut: [...input.leftOut, ...output.leftOut],
    failed: [...input.failed, ...output.failed],
  };
}

/** Imported files are never removed automatically, so all of them must fit and leave some space. */
export async function budgetWarnings(
  {
    settings,
    ledger,
    user,
  }: { readonly settings: ImportLimits; readonly ledger: Ledger; readonly user: string },
  files: readonly FileToImport[],
): Promise<readonly string[]> {
  let neededBytes = await ledger.assets.totalBytes();
  for (const file of files) {
    const existing = await ledger.files.get(user, file);
    if (!isSameFile(existing, file)) neededBytes += file.sizeBytes;
  }
  const budgetBytes = settings.diskBudget * MEBIBYTE;
  const advisedMegabytes = Math.ceil(neededBytes / (1 - MIN_FREE_SHARE) / MEBIBYTE);
  if (neededBytes > budgetBytes) {
    throw new ImportRefused(
      `with these files ${megabytes(neededBytes)} would be stored, and --disk-budget is ` +
        `${settings.diskBudget} MB: give it at least ${advisedMegabytes} here, and the server as well`,
    );
  }
  if (neededBytes <= budgetBytes * (1 - MIN_FREE_SHARE)) return [];
  return [
    `Of --disk-budget (${settings.diskBudget} MB) little is left for new results, which go first ` +
      `when it is used up: start the server with at least --disk-budget ${advisedMegabytes}.`,
  ];
}

/** Beyond its quota a user could save nothing more. */
export function refuseQuota({ found }: Scan, { userdataQuota }: ImportLimits): void {
  const bytes = bytesOf(found);
  if (bytes <= userdataQuota * MEBIBYTE) return;
  throw new ImportRefused(
    `the user's files are ${megabytes(bytes)}, and --userdata-quota is ${userdataQuota} MB: ` +
      'give it more, here and for the server',
  );
}
