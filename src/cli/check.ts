import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { type RestoredRecord, recordOrphans } from './backup/record-orphans.ts';
import { type CheckReport, check, isSound } from './backup/check.ts';
import {
  type RecordedFiles,
  recordedInDatabase,
  recordedInRedis,
} from './backup/recorded-files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { LedgerInUse, lockFile } from '../ledger/sqlite/sqlite-ledger.ts';
import { openStore } from '../app/store.ts';
import { silentLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { checkText } from './check-text.ts';
import { addServerOptions } from '../config/command-line.ts';
import { type DataLocation, createBar, runCommand, withRedis } from './shared-options.ts';

type Settings = DataLocation & {
  readonly repair?: boolean;
  readonly user: string;
  readonly json?: boolean;
};

/** `holdover check`: whether all that is on record is there, whole. Exit code 1: something is wrong. */
export function checkCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover check')
    .description(
      'Checks the database, reads every file on record, and lists files that no record names. ' +
        'Changes nothing without --repair; the server may run meanwhile.',
    )
    .option('--repair', 'put files without a record on record again; stop the server first')
    .option('--user <ID>', 'whose they are when no trace of that is left', LOCAL_USER)
    .option('--json', 'for programs');
  return runCommand(addServerOptions(command, ['data-dir', 'ledger']), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const dataDir = resolve(settings.dataDir);
  if (!existsSync(dataDir)) throw new Error(`there is no data folder ${dataDir}`);
  const { before, adopted } = await withRedis(settings, async (redis) => {
    const recorded = redis
      ? recordedInRedis(redis.ledger, redis.identity.id)
      : recordedInDatabase(databasePath(dataDir));
    if (redis === undefined && settings.repair === true) refuseInUse(dataDir);
    const found = await runCheck(dataDir, recorded, redis);
    if (settings.repair !== true) return { before: found, adopted: [] };
    return { before: found, adopted: await repair(settings, found, recorded) };
  });
  const report = settings.repair === true ? await checkAgain(settings, dataDir) : before;
  const sound = isSound(report);
  process.stdout.write(
    settings.json === true
      ? `${JSON.stringify({ ok: sound, ...report, adopted }, null, 2)}\n`
      : checkText({ ...report, adopted, sound }),
  );
  return sound ? 0 : 1;
}

async function runCheck(
  dataDir: string,
  recorded: RecordedFiles,
  redis: SharedRedis | undefined,
): Promise<CheckReport> {
  const bar = createBar();
  const inUse = redis !== undefined || isInUse(dataDir);
  try {
    return await check({ dataDir, recorded, inUse, now: Date.now, progress: bar.start });
  } finally {
    bar.stop();
  }
}

function checkAgain(settings: Settings, dataDir: string): Promise<CheckReport> {
  return withRedis(settings, (redis) =>
    runCheck(
      dataDir,
      redis
        ? recordedInRedis(redis.ledger, redis.identity.id)
        : recordedInDatabase(databasePath(dataDir)),
      redis,
    ),
  );
}

/** A ledger that is absent is made anew, and one of other files is tied to those that are here. */
async function repair(
  settings: Settings,
  { ledger: { state }, belongs, orphans }: CheckReport,
  recorded: RecordedFiles,
): Promise<readonly RestoredRecord[]> {
  const ledgerIsMissing = state === 'absent' || state === 'empty';
  const canRepair = orphans.some(({ whole }) => whole) || ledgerIsMissing || !belongs;
  if (state === 'damaged' || !canRepair) return [];
  const acceptFiles = ledgerIsMissing || !belongs;
  const remembered = state === 'ok' ? recorded.remembered() : [];
  const source = ledgerSource(settings.ledger);
  const { dataDir, user } = settings;
  const store = await openStore({ ledger: source, dataDir, acceptFiles }, silentLogger());
  try {
    const { ledger } = store;
    return await recordOrphans({ dataDir, ledger, user, now: Date.now }, orphans, remembered);
  } finally {
    await store.close();
  }
}

function refuseInUse(dataDir: string): void {
  if (!isInUse(dataDir)) return;
  throw new Error(`the data folder ${dataDir} is in use by a running Holdover: stop it first`);
}

function isInUse(dataDir: string): boolean {
  if (!existsSync(join(dataDir, 'holdover.db.lock'))) return false;
  try {
    lockFile(databasePath(dataDir)).close();
    return false;
  } catch (error) {
    if (error instanceof LedgerInUse) return true;
    throw error;
  }
}
