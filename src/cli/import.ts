import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { filesSource } from '../config/files.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { ledgerSource } from '../config/ledger.ts';
import type { Blobs } from '../blobs/blobs.ts';
import { type Store, openStore } from '../app/store.ts';
import { systemClock } from '../lib/clock.ts';
import { withOpen } from './with-open.ts';
import { createLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { createFileCopier } from './import/copy.ts';
import { importFiles, scanFiles, type FilesImportResult } from './import/files.ts';
import {
  type Account,
  accountsIn,
  importUser,
  scanUserFolder,
  type UserImportResult,
} from './import/user-data.ts';
import { userFilesInBucket, userFilesInFolder } from './import/user-files.ts';
import { printableName, megabytes } from './printable-name.ts';
import { createProgress } from './progress.ts';
import { DATA_FLAGS, runCommand } from './shared-options.ts';
import type { LeftOut } from './import/scan.ts';

/** Flags that the import shares with the server, and its own. */
type Settings = Pick<Flags, (typeof SERVER_OPTIONS)[number]> & { readonly user: string };

const SERVER_OPTIONS = [...DATA_FLAGS, 'maxUploadSize', 'upstream'] as const;

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
  const files = filesSource(settings, process.env);
  const places = { ledger: ledgerSource(settings.ledger), dataDir: settings.dataDir, files };
  return withOpen(await openStore(places, createLogger({ level: 'warn' })), async (store) => {
    const task = { source, settings, account, accounts };
    const outcome = await importAll(task, store);
    process.stdout.write(reportText(task, outcome));
    return failuresOf(outcome).length === 0 ? 0 : 1;
  });
}

/** With Redis, returns blobs that are safe to write while servers that share the ledger remove blobs. */
async function blobsOf({ links, ledger, files: { blobs } }: Store): Promise<Blobs> {
  if (links === undefined) return blobs;
  const { createSharedBlobs } = await import('../engine/bullmq/shared-blobs.ts');
  const { QueueKeys } = await import('../engine/bullmq/redis-keys.ts');
  const keys = new QueueKeys(links);
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
  readonly account: Account;
  readonly accounts: readonly Account[];
};

async function importAll(
  { source, settings, account }: ImportTask,
  store: Store,
): Promise<ImportOutcome> {
  const { dir, ledger } = store;
  const { bucket } = store.files;
  const scannedFiles =
    settings.upstream === 'embedded' ? await scanFiles(source, settings) : undefined;
  const userFolder = join(source, 'user', account.id);
  const label = `user/${account.id}`;
  const scanned = await scanUserFolder(userFolder, label);
  const onFile = createProgress(scanned.found.length + (scannedFiles?.found.length ?? 0));
  const common = { copy: createFileCopier(dir.spool), user: LOCAL_USER, onFile };
  const blobs = await blobsOf(store);
  const files =
    scannedFiles && (await importFiles({ ...common, ledger, blobs, now: Date.now }, scannedFiles));
  const userFiles = bucket
    ? userFilesInBucket(bucket.objects, LOCAL_USER)
    : userFilesInFolder(dir.userData, LOCAL_USER);
  const options = { ...common, settings: ledger.settings, userFiles, label };
  return { files, user: await importUser(options, userFolder, scanned) };
}

/** The outcome of a finished import. */
type ImportOutcome = {
  /** `undefined` when a remote service has the inputs and outputs. */
  readonly files: FilesImportResult | undefined;
  readonly user: UserImportResult;
};

/** Returns the text that is printed at the end. It lists everything that was left out. */
function reportText(
  { source, settings, account, accounts }: ImportTask,
  outcome: ImportOutcome,
): string {
  const { files, user } = outcome;
  const others = accounts.filter(({ id }) => id !== account.id);
  const lines = [
    `Imported ${printableName(source)} into ${printableName(settings.dataDir)}.`,
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
function failuresOf({ files, user }: ImportOutcome): readonly LeftOut[] {
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
