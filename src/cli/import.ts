import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { type Flags, OPTIONS } from '../config/flags.ts';
import { createCrashPoint } from '../crash-point.ts';
import { type DataDir, openDataDir } from '../data-dir.ts';
import { createBlobs } from '../engine/blobs.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { openSqliteLedger } from '../ledger/sqlite.ts';
import { wipeSpool } from '../spool.ts';
import { LOCAL_USER } from '../v1/identity.ts';
import { createUserData } from '../v1/userdata-store.ts';
import { createCopier } from './import-copy.ts';
import { type FileToImport, type Tally, importFiles, isSameFile } from './import-files.ts';
import { createProgress } from './import-progress.ts';
import { type Outcome, failuresOf, reportText } from './import-report.ts';
import { type Scan, scan } from './import-scan.ts';
import { type Account, accountsIn, importUser, scanUser } from './import-user.ts';
import { safeName } from '../v1/safe-name.ts';
import { megabytes, shown } from './shown.ts';

/** Flags the import shares with the server. */
type Settings = Pick<
  Flags,
  'dataDir' | 'maxUploadSize' | 'diskBudget' | 'userdataQuota' | 'upstream'
> & { readonly user: string };

const SHARED = ['data-dir', 'max-upload-size', 'disk-budget', 'userdata-quota', 'upstream'];
const MEBIBYTE = 1024 * 1024;
/** Of the budget; with less left, new results would soon push each other out. */
const COMFORT = 0.2;

/** A reason not to begin, in a sentence for whoever typed the command. */
class Declined extends Error {}

/** `holdover import DIR`: adopts what a v1 server has. Resolves with the exit code. */
export async function importCommand(argv: readonly string[]): Promise<number> {
  try {
    const command = commandLine().parse([...argv], { from: 'user' });
    return await run(command.args[0] ?? '', command.opts<Settings>());
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof Declined ? 2 : 1;
  }
}

function commandLine(): Command {
  const command = new Command('holdover import')
    .description(
      'Adopts inputs, outputs, settings and workflows of a v1 server. Nothing of it is changed; ' +
        'run again, it goes on where it stopped.',
    )
    .argument('<DIR>', 'folder of the v1 server, with input, output and user in it')
    .option('--user <ID>', 'whose settings and workflows, by the name of the folder', 'default')
    .exitOverride();
  for (const option of OPTIONS) if (SHARED.includes(option.name())) command.addOption(option);
  return command;
}

async function run(source: string, settings: Settings): Promise<number> {
  const folders = ['input', 'output', 'user'].map((name) => join(source, name));
  if (!folders.some((folder) => existsSync(folder))) {
    throw new Declined(`${shown(source)} has neither input nor output nor user in it`);
  }
  const accounts = await accountsIn(join(source, 'user'));
  const account = chosen(accounts, settings.user);
  const dir = openDataDir(settings.dataDir);
  const ledger = openSqliteLedger({ path: dir.database });
  try {
    wipeSpool(dir.spool);
    const outcome = await importAll({ source, settings, dir, ledger, account, accounts });
    process.stdout.write(reportText(outcome));
    return failuresOf(outcome).length === 0 ? 0 : 1;
  } finally {
    await ledger.close();
  }
}

function chosen(accounts: readonly Account[], id: string): Account {
  const account = accounts.find((candidate) => candidate.id === id);
  if (account || id === 'default') return account ?? { id, name: id };
  const names = accounts.map((candidate) => shown(candidate.id)).join(', ') || 'none';
  throw new Declined(`there is no user ${shown(id)}; there are: ${names}`);
}

type Import = {
  readonly source: string;
  readonly settings: Settings;
  readonly dir: DataDir;
  readonly ledger: Ledger;
  readonly account: Account;
  readonly accounts: readonly Account[];
};

async function importAll(task: Import): Promise<Outcome> {
  const { source, settings, dir, ledger, account, accounts } = task;
  const isRemote = settings.upstream !== 'embedded';
  const files = isRemote ? undefined : await scanFiles(source, settings);
  const warnings = await budgetWarnings(task, files?.found ?? []);
  const userFolder = join(source, 'user', account.id);
  const userFiles = await scanUser(userFolder, `user/${account.id}`);
  refuseQuota(userFiles, settings);
  const all = [...(files?.found ?? []), ...userFiles.found];
  const progress = createProgress(process.stderr, { files: all.length, bytes: bytesOf(all) });
  const common = {
    copy: createCopier(dir.spool),
    user: LOCAL_USER,
    onFile: (file: { readonly sizeBytes: number }) => progress.add(file.sizeBytes),
  };
  const reached = createCrashPoint(process.env['HOLDOVER_CRASH_AT']);
  const blobs = createBlobs(join(dir.root, 'blobs'));
  const home = createUserData({ root: dir.userData, quotaBytes: Infinity }).home(LOCAL_USER);
  try {
    const tally =
      files &&
      (await importFiles({ ...common, ledger, blobs, now: Date.now, reached }, files.found));
    const user = await importUser(
      { ...common, settings: ledger.settings, home },
      userFolder,
      userFiles,
    );
    const others = accounts.filter(({ id }) => id !== account.id);
    const { dataDir } = settings;
    return {
      source,
      dataDir,
      files: tally && joined(tally, files),
      account,
      user,
      others,
      warnings,
    };
  } finally {
    progress.stop();
  }
}

type Files = Omit<Scan, 'found'> & { readonly found: readonly FileToImport[] };

async function scanFiles(source: string, { maxUploadSize }: Settings): Promise<Files> {
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

function joined(tally: Tally, { leftOut, failed }: Files): Tally {
  return {
    ...tally,
    leftOut: [...leftOut, ...tally.leftOut],
    failed: [...failed, ...tally.failed],
  };
}

/** Imported files are never swept, so all of them have to fit, and leave some room. */
async function budgetWarnings(
  { settings, ledger }: Import,
  files: readonly FileToImport[],
): Promise<readonly string[]> {
  let needed = await ledger.assets.totalBytes();
  for (const file of files) {
    const held = await ledger.files.get(LOCAL_USER, file);
    if (!isSameFile(held, file)) needed += file.sizeBytes;
  }
  const budget = settings.diskBudget * MEBIBYTE;
  const roomy = Math.ceil(needed / (1 - COMFORT) / MEBIBYTE);
  if (needed > budget) {
    throw new Declined(
      `with these files ${megabytes(needed)} would be stored, and --disk-budget is ` +
        `${settings.diskBudget} MB: give it at least ${roomy} here, and the server as well`,
    );
  }
  if (needed <= budget * (1 - COMFORT)) return [];
  return [
    `Of --disk-budget (${settings.diskBudget} MB) little is left for new results, which go first ` +
      `when it is used up: start the server with at least --disk-budget ${roomy}.`,
  ];
}

function refuseQuota({ found }: Scan, { userdataQuota }: Settings): void {
  const bytes = bytesOf(found);
  if (bytes <= userdataQuota * MEBIBYTE) return;
  throw new Declined(
    `the user's files are ${megabytes(bytes)}, and --userdata-quota is ${userdataQuota} MB: ` +
      'give it more, here and for the server',
  );
}

function bytesOf(files: readonly { readonly sizeBytes: number }[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
