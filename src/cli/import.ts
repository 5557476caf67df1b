import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { type Flags, OPTIONS } from '../config/flags.ts';
import { ledgerSource } from '../config/ledger.ts';
import { Refused } from '../config/refused.ts';
import type { DataDir } from '../data-dir.ts';
import { createBlobs } from '../engine/blobs.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { openStore } from '../store.ts';
import { createLogger } from '../telemetry.ts';
import { LOCAL_USER } from '../v1/identity.ts';
import { createUserData } from '../v1/userdata-store.ts';
import { createCopier } from './import-copy.ts';
import { type Tally, bytesOf, importFiles } from './import-files.ts';
import {
  Declined,
  type Files,
  type Limits,
  budgetWarnings,
  refuseQuota,
  scanFiles,
} from './import-plan.ts';
import { createProgress } from './import-progress.ts';
import { type Outcome, failuresOf, reportText } from './import-report.ts';
import { type Account, accountsIn, importUser, scanUser } from './import-user.ts';
import { shown } from './shown.ts';

/** Flags the import shares with the server. */
type Settings = Limits & Pick<Flags, 'dataDir' | 'upstream' | 'ledger'> & { readonly user: string };

const SHARED = [
  'data-dir',
  'max-upload-size',
  'disk-budget',
  'userdata-quota',
  'upstream',
  'ledger',
];

/** `holdover import DIR`: adopts what a v1 server has. Resolves with the exit code. */
export async function importCommand(argv: readonly string[]): Promise<number> {
  try {
    const command = commandLine().parse([...argv], { from: 'user' });
    return await run(command.args[0] ?? '', command.opts<Settings>());
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return error instanceof Declined || error instanceof Refused ? 2 : 1;
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
  const places = { ledger: ledgerSource(settings.ledger), dataDir: settings.dataDir };
  const store = await openStore(places, createLogger({ level: 'warn' }));
  const { dir, ledger } = store;
  try {
    const outcome = await importAll({ source, settings, dir, ledger, account, accounts });
    process.stdout.write(reportText(outcome));
    return failuresOf(outcome).length === 0 ? 0 : 1;
  } finally {
    await store.close();
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
  const warnings = await budgetWarnings({ ...task, user: LOCAL_USER }, files?.found ?? []);
  const userFolder = join(source, 'user', account.id);
  const label = `user/${account.id}`;
  const userFiles = await scanUser(userFolder, label);
  refuseQuota(userFiles, settings);
  const all = [...(files?.found ?? []), ...userFiles.found];
  const progress = createProgress(process.stderr, { files: all.length, bytes: bytesOf(all) });
  const common = {
    copy: createCopier(dir.spool),
    user: LOCAL_USER,
    onFile: (file: { readonly sizeBytes: number }) => progress.add(file.sizeBytes),
  };
  const blobs = createBlobs(join(dir.root, 'blobs'));
  const home = createUserData({ root: dir.userData, quotaBytes: Infinity }).home(LOCAL_USER);
  try {
    const tally =
      files && (await importFiles({ ...common, ledger, blobs, now: Date.now }, files.found));
    const user = await importUser(
      { ...common, settings: ledger.settings, home, label },
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

function joined(tally: Tally, { leftOut, failed }: Files): Tally {
  return {
    ...tally,
    leftOut: [...leftOut, ...tally.leftOut],
    failed: [...failed, ...tally.failed],
  };
}
