import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { type BackupResult, type BackupSource, backUp } from './backup/backup.ts';
import { isRecordedBy, recordedFiles, requireSound } from './backup/recorded-files.ts';
import { SECRET_BYTES, databasePath, secretIn } from '../data-folder/data-dir.ts';
import { reached } from '../lib/crash-point.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { readSqliteRecords } from '../ledger/sqlite/records.ts';
import { addServerOptions } from '../config/flags.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { type OpenedFiles, withFiles } from './backup/with-files.ts';
import { type DataLocation, runCommand, withRedis } from './shared-options.ts';
import { megabytes, printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

/** `holdover backup DIR`: backs up a ledger and its files, which a server may use meanwhile. Resolves with the exit code. */
export function backupCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover backup')
    .description(
      'Copies all records and files of a ledger into DIR while its server goes on, for "holdover restore" into ' +
        'any ledger and any place of files. A backup that DIR already has is whole until the new one replaces it; ' +
        'files that it has are not copied again.',
    )
    .argument('<DIR>', 'folder of the backup, outside of the data folder');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<DataLocation>();
  const into = command.args[0] ?? '';
  const progress = createProgress();
  const { dataDir } = settings;
  const files = filesSource(settings, process.env);
  const result = await withRedis(settings, async (redis) =>
    withFiles({ dataDir, files }, (opened) =>
      backUp({
        dataDir,
        into,
        openSource: () => openSource(dataDir, redis, opened),
        now: Date.now,
        progress: progress.start,
        reached,
      }),
    ),
  ).finally(progress.stop);
  process.stdout.write(textOf(result, into));
  return result.missing.length === 0 ? 0 : 1;
}

/** Throws when the records cannot be read, or are not those of the files. */
async function openSource(
  dataDir: string,
  redis: SharedRedis | undefined,
  { place, recordedBy }: OpenedFiles,
): Promise<BackupSource> {
  if (!redis) requireSound(databasePath(dataDir));
  const recorded = recordedFiles(dataDir, redis);
  // An outdated database is left in a folder whose records were moved into Redis.
  if (!isRecordedBy(recorded, recordedBy))
    throw new Error(
      `the files of --data-dir ${dataDir} were recorded by another ledger: give the --ledger of their servers`,
    );
  const folderId = await place.readId('folder.id');
  // The secret that is given is used only by a Redis ledger that has none.
  const secret = (await redis?.identity.secret?.(randomBytes(SECRET_BYTES))) ?? secretIn(dataDir);
  const ledgerId = recorded.id();
  if (folderId === undefined || secret === undefined || ledgerId === undefined)
    throw new Error(`no server has used ${dataDir} yet: it lacks secret.key or folder.id`);
  const { kind: ledger } = recorded;
  const identity = { ledger, ledgerId, folderId, secret: secret.toString('base64') };
  if (!redis) return { identity, place, records: () => readSqliteRecords(databasePath(dataDir)) };
  const { readRedisRecords } = await import('../ledger/redis/records.ts');
  return { identity, place, records: () => readRedisRecords(redis.links) };
}

function textOf({ records, files, copied, missing }: BackupResult, into: string): string {
  const lines = [
    `Backup in ${printableName(into)}: ${records} records and ${files} files, ${copied.files} of them new ` +
      `(${megabytes(copied.bytes)}).`,
  ];
  if (missing.length > 0) {
    lines.push(`On record, but not in the backup (see holdover check):`);
    lines.push(...missing.map(({ hash, why }) => `  ${hash}: ${why}`));
  }
  return `${lines.join('\n')}\n`;
}
