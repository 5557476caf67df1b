import type { FilesImportResult } from './files.ts';
import type { LeftOut } from './scan.ts';
import type { Account, UserImportResult } from './user-data.ts';
import { megabytes, printableName } from '../printable-name.ts';

/** The outcome of a finished import. */
export type ImportOutcome = {
  readonly source: string;
  readonly dataDir: string;
  /** `undefined` when a remote service has the inputs and outputs. */
  readonly files: FilesImportResult | undefined;
  readonly account: Account;
  readonly user: UserImportResult;
  readonly others: readonly Account[];
};

/** Returns the text that is printed at the end. It lists everything that was left out. */
export function reportText(outcome: ImportOutcome): string {
  const { source, dataDir, files, account, user, others } = outcome;
  const lines = [
    `Imported ${printableName(source)} into ${printableName(dataDir)}.`,
    files ? filesLine(files) : REMOTE_UPSTREAM,
    `User ${accountText(account)}: ${settingsText(user)}; ${fileCount(user.files)}${alreadyHereText(user.known)}.`,
    ...list('Left out', [...(files?.leftOut ?? []), ...user.leftOut]),
    ...list('Could not be read; run the import again once they can', failuresOf(outcome)),
    ...others.map(
      (other) =>
        `User ${accountText(other)} was left: --user ${printableName(other.id)} imports it.`,
    ),
    'History is not imported: prompts in saved pictures stay in the pictures.',
  ];
  return `${lines.join('\n')}\n`;
}

/** Returns the files that could not be read. Another run may import them. */
export function failuresOf({ files, user }: ImportOutcome): readonly LeftOut[] {
  return [...(files?.failed ?? []), ...user.failed];
}

const REMOTE_UPSTREAM =
  'Inputs and outputs were left: a remote upstream has its own. Start the server with ' +
  '--input-directory, and inputs are uploaded when a prompt names them.';

function filesLine({ files, bytes, known }: FilesImportResult): string {
  return `Inputs and outputs: ${fileCount(files)}, ${megabytes(bytes)}${alreadyHereText(known)}.`;
}

function settingsText({ settings, keptSettings }: UserImportResult): string {
  const kept = keptSettings === 0 ? '' : ` (${keptSettings} more are set here already)`;
  return `${settings} ${settings === 1 ? 'setting' : 'settings'}${kept}`;
}

function fileCount(files: number): string {
  return `${files} ${files === 1 ? 'file' : 'files'}`;
}

function alreadyHereText(known: number): string {
  return known === 0 ? '' : ` (${known} more were here already)`;
}

function accountText({ id, name }: Account): string {
  return id === name ? printableName(id) : `${printableName(name)} (${printableName(id)})`;
}

function list(title: string, items: readonly LeftOut[]): readonly string[] {
  if (items.length === 0) return [];
  return [`${title}:`, ...items.map(({ name, why }) => `  ${printableName(name)}: ${why}`)];
}
