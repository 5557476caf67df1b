import type { Tally } from './import-files.ts';
import type { LeftOut } from './import-scan.ts';
import type { Account, UserTally } from './import-user.ts';
import { megabytes, shown } from './shown.ts';

/** All there is to say of an import that came to its end. */
export type Outcome = {
  readonly source: string;
  readonly dataDir: string;
  /** `undefined`: the files of jobs lie with a remote service. */
  readonly files: Tally | undefined;
  readonly account: Account;
  readonly user: UserTally;
  readonly others: readonly Account[];
  readonly warnings: readonly string[];
};

/** What a person reads at the end; nothing that was left out goes unsaid. */
export function reportText(outcome: Outcome): string {
  const { source, dataDir, files, account, user, others, warnings } = outcome;
  const lines = [
    `Imported ${shown(source)} into ${shown(dataDir)}.`,
    files ? filesLine(files) : REMOTE,
    `User ${named(account)}: ${settingsText(user)}; ${counted(user.files)}${knownText(user.known)}.`,
    ...list('Left out', [...(files?.leftOut ?? []), ...user.leftOut]),
    ...list('Could not be read; run the import again once they can', failuresOf(outcome)),
    ...others.map(
      (other) => `User ${named(other)} was left: --user ${shown(other.id)} imports it.`,
    ),
    ...warnings,
    'History is not imported: prompts in saved pictures stay in the pictures.',
  ];
  return `${lines.join('\n')}\n`;
}

/** What another try may bring. */
export function failuresOf({ files, user }: Pick<Outcome, 'files' | 'user'>): readonly LeftOut[] {
  return [...(files?.failed ?? []), ...user.failed];
}

const REMOTE =
  'Inputs and outputs were left: with a remote upstream they lie there. Start the server with ' +
  '--input-directory, and inputs are uploaded when a prompt names them.';

function filesLine({ files, bytes, known }: Tally): string {
  return `Inputs and outputs: ${counted(files)}, ${megabytes(bytes)}${knownText(known)}.`;
}

function settingsText({ settings, keptSettings }: UserTally): string {
  const kept = keptSettings === 0 ? '' : ` (${keptSettings} more are set here already)`;
  return `${settings} ${settings === 1 ? 'setting' : 'settings'}${kept}`;
}

function counted(files: number): string {
  return `${files} ${files === 1 ? 'file' : 'files'}`;
}

function knownText(known: number): string {
  return known === 0 ? '' : ` (${known} more were here already)`;
}

function named({ id, name }: Account): string {
  return id === name ? shown(id) : `${shown(name)} (${shown(id)})`;
}

function list(title: string, items: readonly LeftOut[]): readonly string[] {
  if (items.length === 0) return [];
  return [`${title}:`, ...items.map(({ name, why }) => `  ${shown(name)}: ${why}`)];
}
