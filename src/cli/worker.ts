import { Command } from 'commander';
import { filesSource } from '../config/files.ts';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { type LedgerSource, ledgerSource } from '../config/ledger.ts';
import { ENGINE_FLAGS, engineLimits, readLimits } from '../config/limits.ts';
import { DEFAULT_LIMITS } from '../engine/job-engine.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { tracingSettings } from '../config/tracing.ts';
import { packageVersion } from '../config/version.ts';
import { openTracing } from '../tracing/tracing.ts';
import { createDistributedEngine } from '../engine/bullmq/distributed-engine.ts';
import { openStore } from '../app/store.ts';
import { CallCauses } from '../observability/call-causes.ts';
import { type Logger, createLogger, logProcessErrors } from '../observability/log.ts';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';
import { DATA_FLAGS, runCommand } from './shared-options.ts';
import { stopSignal } from './stop-signal.ts';

/** The settings of the server that also apply to a worker. */
const OPTIONS = [...DATA_FLAGS, ...ENGINE_FLAGS, 'limits', 'logLevel'] as const;

type Settings = Pick<Flags, (typeof OPTIONS)[number]>;

/** `holdover worker`: runs jobs of the queue until a signal stops it. Resolves with the exit code. */
export function workerCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover worker').description(
    'Runs jobs of a Holdover whose ledger is in Redis; answers no calls of clients.',
  );
  return runCommand(addServerOptions(command, OPTIONS), argv, run, withoutCredentialsIn);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const ledger = ledgerSource(settings.ledger);
  if (ledger.kind !== 'redis')
    throw new InvalidSetting("a worker needs the '--ledger redis://…' of the servers it works for");
  if (settings.concurrency === 0)
    throw new InvalidSetting("a worker needs a '--concurrency' of 1 or more");
  if (settings.dataDir === '')
    throw new InvalidSetting("option '--data-dir' needs the name of a folder");
  const log = createLogger({ level: settings.logLevel });
  logProcessErrors(log);
  return runWorker(settings, ledger, log);
}

async function runWorker(settings: Settings, source: LedgerSource, log: Logger): Promise<number> {
  const { concurrency, dataDir } = settings;
  const takeover = readLimits(settings.limits).workers;
  const files = filesSource(settings, process.env);
  const stopped = stopSignal();
  const store = await openStore({ ledger: source, dataDir, files }, log);
  const { ledger, dir, links } = store;
  if (links === undefined) throw new Error('a worker needs a ledger in Redis');
  const tracing = await openTracing(tracingSettings(process.env), {
    version: packageVersion(),
    log,
    causes: new CallCauses(() => undefined),
  });
  const worker = await createDistributedEngine(
    {
      ledger,
      blobs: store.files.blobs,
      outputFiles: { spoolDir: dir.spool },
      library: { nodes: ALL_NODES },
      log,
      traceRun: tracing?.run,
      limits: { ...DEFAULT_LIMITS, ...engineLimits(settings) },
    },
    { links, takeover },
  );
  worker.start();
  process.stdout.write('Holdover worker is waiting for jobs\n');
  log.info({ event: 'worker.started', concurrency, dataDir: dir.root }, 'waiting for jobs');
  const lost = await Promise.race([stopped.then(() => undefined), store.lost]);
  if (lost) {
    log.fatal({ event: 'storage.lost', err: lost }, `stopping: ${lost.message}`);
    return 1;
  }
  log.info({ event: 'worker.stopping' }, 'stopping');
  await worker.close();
  await tracing?.close();
  await store.close();
  return 0;
}
