import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { ledgerSource } from '../config/ledger.ts';
import type { DataDir } from '../data-folder/data-dir.ts';
import type { Blobs } from '../upstreams/blobs.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type Store, openStore } from '../app/store.ts';
import { systemClock } from '../lib/clock.ts';
import { createLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { createFileCopier } from './import/copy.ts';
import {
  type FilesImportResult,
  importFiles,
  type FilesToImport,
  budgetWarnings,
  refuseQuota,
  scanFiles,
} from './import/files.ts';
import { type ImportOutcome, failuresOf, reportText } from './import/report.ts';
import { type Account, accountsIn, importUser, scanUserFolder } from './import/user-data.ts';
import { type UserFiles, userFilesInBucket, userFilesInFolder } from './import/user-files.ts';
import { printableName } from './printable-name.ts';
import { createProgress, totalOf } from './progress.ts';
import { runCommand } from './shared-options.ts';

/** Flags that the import shares with the server, and its own. */
type Settings = Pick<Flags, (typeof SERVER_OPTIONS)[number]> & { readonly user: string };

const SERVER_OPTIONS = [
  'dataDir',
  ...FILES_FLAGS,
  'maxUploadSize',
  'diskBudget',
  'userdataQuota',
  'upstream',
  'ledger',
] as const;

/** `holdover import DIR`: imports the files of a v1 server. Resolves with the exit code. */
export function importCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover import')
    .description(
      'Adopts inputs, outputs, settings and workflows of a v1 server. Nothing of it is changed; ' +
        'run again, it goes on where it stopped.',
    )
    .argument('<DIR>', 'folder of the v1 server, with input, output and user in it')
    .option('--user <ID>', 'whose settings and workflows, by the name of the folder', 'default');
  return runCommand(addServerOptions(command, SERVER_OPTIONS), argv, run, String);
}

async function run(command: Command): Promise<number> {
  const [source = ''] = command.args;
  const settings = command.opts<Settings>();
  const folders = ['input', 'output', 'user'].map((name) => join(source, name));
  if (!folders.some((folder) => existsSync(folder))) {
    throw new InvalidSetting(
      `${printableName(source)} has neither input nor output nor user in it`,
    );
  }
  const accounts = await accountsIn(join(source, 'user'));
  const account = findAccount(accounts, settings.user);
  const { dataDir } = settings;
  const files = filesSource(settings, process.env);
  const places = { ledger: ledgerSource(settings.ledger), dataDir, files };
  const store = await openStore(places, createLogger({ level: 'warn' }));
  const { dir, ledger } = store;
  const { bucket } = store.files;
  const userFiles = bucket
    ? userFilesInBucket(bucket.objects, LOCAL_USER)
    : userFilesInFolder(dir.userData, LOCAL_USER);
  try {
    const outcome = await importAll({
      source,
      settings,
      dir,
      ledger,
      blobs: await blobsOf(store),
      userFiles,
      account,
      accounts,
    });
    process.stdout.write(reportText(outcome));
    return failuresOf(outcome).length === 0 ? 0 : 1;
  } finally {
    await store.close();
  }
}

/** With Redis, returns blobs that are safe to write while servers that share the ledger remove blobs. */
async function blobsOf({ links, ledger, files: { blobs } }: Store): Promise<Blobs> {
  if (links === undefined) return blobs;
  const { createSharedBlobs } = await import('../upstreams/distributed-state/shared-blobs.ts');
  const { createQueueKeys } = await import('../upstreams/distributed-state/redis-keys.ts');
  const keys = createQueueKeys(links.partitions);
  return createSharedBlobs({ redis: links.commands, keys, blobs, ledger, clock: systemClock });
}

function findAccount(accounts: readonly Account[], id: string): Account {
  const account = accounts.find((candidate) => candidate.id === id);
  if (account || id === 'default') return account ?? { id, name: id };
  const names = accounts.map((candidate) => printableName(candidate.id)).join(', ') || 'none';
  throw new InvalidSetting(`there is no user ${printableName(id)}; there are: ${names}`);
}

type ImportTask = {
  readonly source: string;
  readonly settings: Settings;
  readonly dir: DataDir;
  readonly ledger: Ledger;
  readonly blobs: Blobs;
  readonly userFiles: UserFiles;
  readonly account: Account;
  readonly accounts: readonly Account[];
};

async function importAll(task: ImportTask): Promise<ImportOutcome> {
  const { source, settings, dir, ledger, blobs, userFiles, account, accounts } = task;
  const isRemote = settings.upstream !== 'embedded';
  const files = isRemote ? undefined : await scanFiles(source, settings);
  const warnings = await budgetWarnings({ ...task, user: LOCAL_USER }, files?.found ?? []);
  const userFolder = join(source, 'user', account.id);
  const label = `user/${account.id}`;
  const scanned = await scanUserFolder(userFolder, label);
  refuseQuota(scanned, settings);
  const all = [...(files?.found ?? []), ...scanned.found];
  const progress = createProgress();
  const onBytes = progress.start(totalOf(all));
  const commonOptions = {
    copy: createFileCopier(dir.spool),
    user: LOCAL_USER,
    onFile: (file: { readonly sizeBytes: number }) => onBytes(file.sizeBytes),
  };
  try {
    const importResult =
      files && (await importFiles({ ...commonOptions, ledger, blobs, now: Date.now }, files.found));
    const user = await importUser(
      { ...commonOptions, settings: ledger.settings, userFiles, label },
      userFolder,
      scanned,
    );
    const others = accounts.filter(({ id }) => id !== account.id);
    const { dataDir } = settings;
    return {
      source,
      dataDir,
      files: importResult && mergeResults(importResult, files),
      account,
      user,
      others,
      warnings,
    };
  } finally {
    progress.stop();
  }
}

function mergeResults(
  importResult: FilesImportResult,
  { leftOut, failed }: FilesToImport,
): FilesImportResult {
  return {
    ...importResult,
    leftOut: [...leftOut, ...importResult.leftOut],
    failed: [...failed, ...importResult.failed],
  };
}
