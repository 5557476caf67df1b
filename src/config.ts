import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

/** Everything a start is told, parsed once and frozen. */
export type Config = {
  readonly listen: string;
  readonly port: number;
  readonly upstream: 'embedded';
  readonly dataDir: string;
  readonly maxUploadBytes: number;
  /** `undefined`: the origin check is on; else the value of `Access-Control-Allow-Origin`. */
  readonly corsOrigin: string | undefined;
  readonly logLevel: (typeof LOG_LEVELS)[number];
  readonly localToken: string | undefined;
  readonly view: (typeof VIEW_MODES)[number];
  readonly previewMethod: (typeof PREVIEW_METHODS)[number];
  readonly concurrency: number;
  readonly queueLimit: number;
  readonly jobTimeoutMs: number;
  readonly jobMemoryBytes: number;
  readonly historyLimit: number;
  readonly diskBudgetBytes: number;
  readonly retentionMs: number;
  readonly maxSockets: number;
  readonly maxSocketsPerUser: number;
};

export type Parsed =
  | { readonly kind: 'config'; readonly config: Config }
  /** `--help`, `--version`, or a wrong flag: `text` is what to print. */
  | { readonly kind: 'exit'; readonly code: number; readonly text: string };

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const VIEW_MODES = ['auto', 'redirect', 'stream'] as const;
const PREVIEW_METHODS = ['auto', 'negotiated', 'none'] as const;
const MEBIBYTE = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What commander collects; names follow the flags. */
type Flags = {
  listen: string | true;
  port: number;
  upstream: string;
  dataDir: string;
  maxUploadSize: number;
  enableCorsHeader?: string | true;
  logLevel: Config['logLevel'];
  localToken?: string;
  allowInsecureBind?: boolean;
  view: Config['view'];
  previewMethod: Config['previewMethod'];
  concurrency: number;
  queueLimit: number;
  jobTimeout: number;
  jobMemory: number;
  historyLimit: number;
  diskBudget: number;
  retentionDays: number;
  maxSockets: number;
  maxSocketsPerUser: number;
};

/** One row per setting: flag, environment twin, help, default, parser. v1's own names where it has them. */
const OPTIONS: readonly Option[] = [
  setting('--listen [ADDR]', 'address to bind; bare: 0.0.0.0').default('127.0.0.1'),
  setting('--port <PORT>', 'port to bind; 0 picks a free one')
    .default(8188)
    .argParser(integer({ min: 0, max: 65535 })),
  setting(
    '--upstream <URL>',
    'what runs the jobs: "embedded", or the address of a v2 service',
  ).default('embedded'),
  setting('--data-dir <DIR>', 'where everything is kept').default('./data'),
  setting('--max-upload-size <MB>', 'largest request body')
    .default(100)
    .argParser(decimal({ min: 0.001, max: 1_000_000 })),
  setting(
    '--enable-cors-header [ORIGIN]',
    'allow this origin instead of checking origins; bare: *',
  ),
  setting('--log-level <LEVEL>', 'how much to log').choices(LOG_LEVELS).default('info'),
  setting(
    '--local-token <TOKEN>',
    'only callers presenting this token are served; better set in the environment',
  ),
  setting('--allow-insecure-bind', 'bind beyond loopback without a token'),
  setting('--view <MODE>', '/view and /api/view: as v1 (auto), always redirect, always stream')
    .choices(VIEW_MODES)
    .default('auto'),
  setting(
    '--preview-method <METHOD>',
    'previews to all sockets, to those that negotiated them, or to none',
  )
    .choices(PREVIEW_METHODS)
    .default('auto'),
  setting('--concurrency <N>', 'jobs the embedded engine runs in parallel')
    .default(1)
    .argParser(integer({ min: 1, max: 64 })),
  setting('--queue-limit <N>', 'jobs that may wait in the embedded engine')
    .default(1000)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting('--job-timeout <SECONDS>', 'longest run of one job')
    .default(1800)
    .argParser(integer({ min: 1, max: 604_800 })),
  setting('--job-memory <MB>', 'most memory the pictures of one job may take')
    .default(4096)
    .argParser(integer({ min: 16, max: 1_000_000 })),
  setting('--history-limit <N>', 'history entries kept for each user')
    .default(10_000)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting('--disk-budget <MB>', 'most disk space for stored files')
    .default(20_480)
    .argParser(integer({ min: 16, max: 100_000_000 })),
  setting('--retention-days <DAYS>', 'how long jobs and their outputs are kept')
    .default(7)
    .argParser(decimal({ min: 0.001, max: 36_500 })),
  setting('--max-sockets <N>', 'WebSocket connections in all')
    .default(1000)
    .argParser(integer({ min: 1, max: 100_000 })),
  setting('--max-sockets-per-user <N>', 'WebSocket connections of one user')
    .default(50)
    .argParser(integer({ min: 1, max: 100_000 })),
];

/** Reads flags and environment; a wrong one becomes one clear line and exit code 2. */
export function parseConfig(argv: readonly string[], env: NodeJS.ProcessEnv): Parsed {
  let text = '';
  const command = new Command('holdover')
    .description('Keeps unchanged v1 workflow clients working on the v2 job API.')
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (chunk) => (text += chunk),
      writeErr: (chunk) => (text += chunk),
    });
  for (const option of OPTIONS) command.addOption(option);
  try {
    withEnvironment(env, () => command.parse([...argv], { from: 'user' }));
    return { kind: 'config', config: toConfig(command.opts<Flags>()) };
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return { kind: 'exit', code: 0, text };
      return { kind: 'exit', code: 2, text: `${error.message.replaceAll('\n', ' ')}\n` };
    }
    if (error instanceof Refused)
      return { kind: 'exit', code: 2, text: `error: ${error.message}\n` };
    throw error;
  }
}

/** Version of this package, as `--version`, logs and `/system_stats` show it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** Whether an address can only be reached from this machine. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

class Refused extends Error {}

function toConfig(flags: Flags): Config {
  const listen = flags.listen === true ? '0.0.0.0' : flags.listen;
  refuseBadListen(listen);
  refuseOpenBind(listen, flags);
  if (flags.dataDir === '') throw new Refused("option '--data-dir' needs the name of a folder");
  if (flags.upstream !== 'embedded') throw new Refused(upstreamRefusal(flags.upstream));
  const { enableCorsHeader: cors } = flags;
  if (typeof cors === 'string') refuseBadOrigin(cors);
  return Object.freeze({
    listen,
    port: flags.port,
    upstream: 'embedded',
    dataDir: flags.dataDir,
    maxUploadBytes: Math.round(flags.maxUploadSize * MEBIBYTE),
    corsOrigin: cors === true ? '*' : cors,
    logLevel: flags.logLevel,
    localToken: flags.localToken === '' ? undefined : flags.localToken,
    view: flags.view,
    previewMethod: flags.previewMethod,
    concurrency: flags.concurrency,
    queueLimit: flags.queueLimit,
    jobTimeoutMs: flags.jobTimeout * 1000,
    jobMemoryBytes: flags.jobMemory * MEBIBYTE,
    historyLimit: flags.historyLimit,
    diskBudgetBytes: flags.diskBudget * MEBIBYTE,
    retentionMs: flags.retentionDays * DAY_MS,
    maxSockets: flags.maxSockets,
    maxSocketsPerUser: flags.maxSocketsPerUser,
  });
}

function refuseBadListen(listen: string): void {
  if (listen === 'localhost' || isIP(listen) !== 0) return;
  throw new Refused(`option '--listen' needs an IP address or "localhost", not '${listen}'`);
}

function refuseOpenBind(listen: string, flags: Flags): void {
  if (isLoopback(listen) || flags.localToken || flags.allowInsecureBind) return;
  throw new Refused(
    `binding ${listen} lets anyone who reaches this machine run jobs and read files: ` +
      'set --local-token (HOLDOVER_LOCAL_TOKEN), or say --allow-insecure-bind if that is meant',
  );
}

/** Requests are compared with it, so that anything but an origin would let nobody in. */
function refuseBadOrigin(text: string): void {
  if (text === '*' || (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))) return;
  throw new Refused(
    `option '--enable-cors-header' needs * or an origin such as http://localhost:3000, not '${text}'`,
  );
}

function upstreamRefusal(value: string): string {
  return URL.canParse(value)
    ? `remote upstreams are not supported yet: --upstream ${new URL(value).origin} cannot be used, only "embedded"`
    : `option '--upstream' must be "embedded" or a URL, not '${value}'`;
}

function setting(flags: string, help: string): Option {
  const option = new Option(flags, help);
  return option.env(`HOLDOVER_${option.name().replaceAll('-', '_').toUpperCase()}`);
}

function integer(range: { min: number; max: number }): (text: string) => number {
  return (text) => within(range, /^-?\d+$/.test(text) ? Number(text) : Number.NaN);
}

function decimal(range: { min: number; max: number }): (text: string) => number {
  return (text) => within(range, /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN);
}

function within({ min, max }: { min: number; max: number }, value: number): number {
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
}

/** For commander a switch is on as soon as its variable exists, whatever that says. */
const SWITCHES = ['HOLDOVER_ALLOW_INSECURE_BIND'];
const OFF = /^(|0|false|no|off)$/i;

/** commander reads `process.env` only; tests and embedders bring their own. */
function withEnvironment(env: NodeJS.ProcessEnv, run: () => void): void {
  const before = process.env;
  process.env = { ...env };
  for (const name of SWITCHES) if (OFF.test(env[name] ?? '')) delete process.env[name];
  try {
    run();
  } finally {
    process.env = before;
  }
}
