import { once } from 'node:events';
import { MEBIBYTE, daysInMs } from '../config/parse-values.ts';
import { parseWorkerConfig, type WorkerSettings } from '../config/worker.ts';
import { DEFAULT_LIMITS } from '../upstreams/job-engine.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { tracingSettings } from '../config/tracing.ts';
import { packageVersion } from '../config/version.ts';
import { openTracing } from '../tracing/tracing.ts';
import { createDistributedEngine } from '../upstreams/distributed/distributed-engine.ts';
import { openStore } from '../app/store.ts';
import { type Logger, createLogger, logProcessErrors } from '../observability/log.ts';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** `holdover worker`: takes jobs from the queue until a signal stops it; resolves with the exit code. */
export async function workerCommand(argv: readonly string[]): Promise<number> {
  const parsed = parseWorkerConfig(argv);
  if (parsed.kind === 'exit') {
    (parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
    return parsed.code;
  }
  const log = createLogger({ level: parsed.settings.logLevel });
  logProcessErrors(log);
  try {
    return await runWorker(parsed.settings, log);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`error: ${withoutCredentialsIn(message)}\n`);
    log.debug({ event: 'worker.start_failed', err: error }, 'the start failed');
    return 1;
  }
}

async function runWorker(settings: WorkerSettings, log: Logger): Promise<number> {
  const { source, dataDir, concurrency } = settings;
  const stopSignal = Promise.race(SIGNALS.map((signal) => once(process, signal)));
  const store = await openStore({ ledger: source, dataDir, files: settings.filesSource }, log);
  const { ledger, dir, links } = store;
  if (links === undefined) throw new Error('a worker needs a ledger in Redis');
  const options = { version: packageVersion(), log };
  const tracing = await openTracing(tracingSettings(process.env), options);
  const worker = await createDistributedEngine({
    ledger,
    links,
    dataDir: dir.root,
    blobs: store.files.blobs,
    spoolDir: dir.spool,
    nodes: ALL_NODES,
    log,
    takeover: settings.takeover,
    spans: tracing?.runs,
    limits: { ...DEFAULT_LIMITS, ...limitsOf(settings) },
  });
  worker.start();
  process.stdout.write('Holdover worker is waiting for jobs\n');
  log.info({ event: 'worker.started', concurrency, dataDir: dir.root }, 'waiting for jobs');
  const lost = await Promise.race([stopSignal.then(() => undefined), store.lost]);
  if (lost) {
    log.fatal({ event: 'storage.lost', err: lost }, `stopping: ${lost.message}`);
    return 1;
  }
  log.info({ event: 'worker.stopping' }, 'stopping');
  // A second signal means now.
  for (const signal of SIGNALS) process.once(signal, () => process.exit(1));
  await worker.close();
  await tracing?.close();
  await store.close();
  return 0;
}

function limitsOf(settings: WorkerSettings) {
  return {
    concurrency: settings.concurrency,
    jobTimeMs: settings.jobTimeout * 1000,
    jobMemoryBytes: settings.jobMemory * MEBIBYTE,
    assetBudgetBytes: settings.diskBudget * MEBIBYTE,
    retentionMs: daysInMs(settings.retentionDays),
  };
}
