import type { RestoredRecord } from './backup/record-orphans.ts';
import type { CheckReport, Orphan, DamagedFile } from './backup/check.ts';
import { megabytes, printableName } from './printable-name.ts';

type ShownReport = CheckReport & {
  readonly adopted: readonly RestoredRecord[];
  readonly sound: boolean;
};

/** The result of a check for people; every file is named. */
export function checkText(report: ShownReport): string {
  const { dataDir, recorded, trouble, orphans, adopted, sound } = report;
  const lines = [
    `Data folder ${printableName(dataDir)}`,
    ...ledgerLines(report),
    ...(report.belongs ? [] : [OTHER_LEDGER]),
    ...secretLines(report),
    ...(report.unfinishedRestore ? [UNFINISHED_RESTORE_TEXT] : []),
    ...(recorded === null
      ? ['Files were not compared: the ledger cannot say which there should be.']
      : [`Files on record: ${recorded.files} (${megabytes(recorded.bytes)}).`]),
    ...listed('Files on record that are not there as they should be', trouble.map(troubleLine)),
    ...(trouble.length > 0 ? [BACKUP_ADVICE] : []),
    ...listed('Put on record again', adopted.map(adoptedLine)),
    ...listed('Files without a record', orphans.map(orphanLine)),
    ...(orphans.some(({ whole }) => whole) ? [REPAIR_ADVICE] : []),
    sound ? 'Everything is as it should be.' : 'Something is wrong.',
  ];
  return `${lines.join('\n')}\n`;
}

const UNFINISHED_RESTORE_TEXT =
  'A restore was interrupted while files took their places: run holdover restore with --replace.';
const OTHER_LEDGER =
  'The files were recorded by another ledger: put that one back, or let --repair tie this one to them.';
const BACKUP_ADVICE =
  'A backup may have them: each backup has the same folders, so that single files can be copied back.';
const REPAIR_ADVICE =
  'holdover check --repair puts them on record again: under their names where a job or a name ' +
  'still tells them, otherwise in the folder "recovered" of the outputs.';

function ledgerLines({ ledger: { kind, state, errors } }: CheckReport): readonly string[] {
  if (kind === 'redis') return ['Ledger: in Redis.'];
  if (state === 'ok') return ['Database: sound.'];
  return [
    `Database: ${state}.`,
    ...errors.map((error) => `  ${printableName(error)}`),
    ADVICE[state],
  ];
}

const ADVICE = {
  absent: 'Put a backup back with holdover restore.',
  empty: 'Put a backup back with holdover restore.',
  damaged:
    'Put a backup back with holdover restore: nothing can be repaired in a damaged database.',
} as const;

function secretLines({ secret }: CheckReport): readonly string[] {
  if (secret === 'ok' || secret === 'elsewhere') return [];
  return [`secret.key is ${secret}: without it every user with a key is a new user.`];
}

function listed(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`${title}: ${lines.length}`, ...lines];
}

function troubleLine({ path, why, names }: DamagedFile): string {
  const whose = names.map(
    ({ user, filePath }) => `${printableName(filePath)} of ${printableName(user)}`,
  );
  return `  ${why}: ${path} (${whose.join(', ')})`;
}

function orphanLine({ path, sizeBytes, whole }: Orphan): string {
  return `  ${path} (${megabytes(sizeBytes)}${whole ? '' : ', damaged'})`;
}

function adoptedLine({ hash, user, filePath, as }: RestoredRecord): string {
  const how = as === 'remembered' ? '' : ', its own name is not known';
  return `  ${printableName(filePath)} of ${printableName(user)} (${hash}${how})`;
}
