import { InvalidArgumentError, Option } from 'commander';

/** By this day the documentation of the hosted v1 API called it deprecated. */
const DEPRECATION_DATE = '2026-08-21';

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const VIEW_MODES = ['auto', 'redirect', 'stream'] as const;
const DIALECTS = ['auto', 'local', 'hosted'] as const;
const PREVIEW_METHODS = ['default', 'auto', 'latent2rgb', 'taesd', 'negotiated', 'none'] as const;
export const ASSET_MODES = ['auto', 'object', 'string'] as const;
export const LABEL_MODES = ['auto', 'map', 'string', 'none'] as const;
/** No known upstream refuses so many. */
const MAX_STREAMS = 6;

/** Parsed flags; commander derives the names from the flags. */
export type Flags = {
  listen: string | true;
  port: number;
  upstream: string;
  upstreamKey?: string;
  upstreamAssets: (typeof ASSET_MODES)[number];
  upstreamLabels: (typeof LABEL_MODES)[number];
  upstreamStreams: number;
  upstreamLimits: string;
  upstreamRedirects?: readonly string[];
  routerPrefix: string;
  outboxLimit: number;
  objectInfo: string;
  dataDir: string;
  ledger: string;
  files: string;
  s3Endpoint?: string;
  s3PublicEndpoint?: string;
  s3Region?: string;
  startAnew?: boolean;
  workerLimits: string;
  maxUploadSize: number;
  maxJsonValues: number;
  maxNodes: number;
  enableCorsHeader?: string | true;
  logLevel: (typeof LOG_LEVELS)[number];
  tracePrompt?: string;
  localToken?: string;
  allowInsecureBind?: boolean;
  publicUrl?: string;
  trustProxy?: readonly string[];
  allowedHosts?: readonly string[];
  view: (typeof VIEW_MODES)[number];
  dialect: (typeof DIALECTS)[number];
  previewMethod: (typeof PREVIEW_METHODS)[number];
  concurrency: number;
  queueLimit: number;
  jobTimeout: number;
  jobMemory: number;
  historyLimit: number;
  historySize: number;
  historyGraphLimit: number;
  diskBudget: number;
  retentionDays: number;
  maxSockets: number;
  maxSocketsPerUser: number;
  v2Rate: number;
  frontEndRoot?: string;
  inputDirectory?: string;
  outputDirectory?: string;
  userdataQuota: number;
  modelKeys?: string;
  modelCalls: number;
  modelSpend: number;
  modelRate: number;
  modelTimeout: number;
  modelLimits: string;
  tlsKeyfile?: string;
  tlsCertfile?: string;
  deprecationDate: string;
  sunset?: string;
  brownout?: readonly string[];
};

/** One row per setting: flag, environment variable, help, default, parser. Names are v1's where v1 has the setting. */
export const OPTIONS: readonly Option[] = [
  setting('--listen [ADDR]', 'address to bind; bare: 0.0.0.0').default('127.0.0.1'),
  setting('--port <PORT>', 'port to bind; 0 picks a free one')
    .default(8188)
    .argParser(integer({ min: 0, max: 65535 })),
  setting(
    '--upstream <URL>',
    'what runs the jobs: "embedded", or the address of a v2 service',
  ).default('embedded'),
  // No environment variable of its own: HOLDOVER_UPSTREAM_KEY is the key itself, not a file's name.
  new Option(
    '--upstream-key <FILE>',
    'file with the one key used for all callers (env: HOLDOVER_UPSTREAM_KEY, the key itself)',
  ),
  setting('--upstream-assets <MODE>', 'how workflows name files upstream')
    .choices(ASSET_MODES)
    .default('auto'),
  setting('--upstream-labels <MODE>', 'how jobs are labelled upstream')
    .choices(LABEL_MODES)
    .default('auto'),
  setting('--upstream-streams <N>', 'event streams open at a time; 0: poll instead')
    .default(MAX_STREAMS)
    .argParser(integer({ min: 0, max: MAX_STREAMS })),
  setting(
    '--upstream-redirects <HOST...>',
    'private hosts (HOST or HOST:PORT) where the upstream may keep its files',
  ).argParser(collect),
  setting('--upstream-limits <JSON>', 'times and bounds of the upstream client')
    .default('{}')
    .hideHelp(),
  setting('--router-prefix <PATH>', 'where the upstream has its model router').default(
    '/v1/models',
  ),
  setting('--outbox-limit <N>', 'prompts of one user that may wait for the upstream to have room')
    .default(1000)
    .argParser(integer({ min: 0, max: 1_000_000 })),
  setting(
    '--object-info <SOURCE>',
    'node definitions: a file, a URL, "embedded", or "auto" (the upstream, else embedded)',
  ).default('auto'),
  setting('--data-dir <DIR>', 'where everything is kept').default('./data'),
  setting(
    '--files <WHERE>',
    '"folder" in the data directory, or s3://BUCKET/PREFIX: where uploads, outputs and saved files are',
  ).default('folder'),
  setting('--s3-endpoint <URL>', 'server of the bucket; default: that of Amazon S3 in the region'),
  setting('--s3-public-endpoint <URL>', 'the same server as callers reach it, for --view redirect'),
  setting('--s3-region <NAME>', 'region of the bucket; default: AWS_REGION, or us-east-1'),
  setting(
    '--ledger <URL>',
    '"sqlite" in the data directory, or redis://… shared by several processes; with commas, nodes of a cluster',
  ).default('sqlite'),
  setting(
    '--start-anew',
    'start although the ledger is new or damaged: move all files aside first (nothing is removed)',
  ),
  setting('--worker-limits <JSON>', 'times after which jobs of dead workers are taken up')
    .default('{}')
    .hideHelp(),
  setting('--max-upload-size <MB>', 'largest request body')
    .default(100)
    .argParser(decimal({ min: 0.001, max: 1_000_000 })),
  setting('--max-json-values <N>', 'JSON values in one request body')
    .default(500_000)
    .argParser(integer({ min: 1000, max: 100_000_000 })),
  setting('--max-nodes <N>', 'nodes of one graph')
    .default(10_000)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting(
    '--enable-cors-header [ORIGIN]',
    'allow this origin instead of checking origins; bare: *',
  ),
  setting('--log-level <LEVEL>', 'how much to log').choices(LOG_LEVELS).default('info'),
  setting(
    '--trace-prompt <ID>',
    'log only lines about this prompt, with each of its calls, frames and events',
  ),
  setting(
    '--local-token <TOKEN>',
    'only callers presenting this token are served; better set in the environment',
  ),
  setting('--allow-insecure-bind', 'bind beyond loopback without a token'),
  setting('--public-url <URL>', 'address at which callers reach the server, path prefix included'),
  setting(
    '--trust-proxy <ADDRESS...>',
    'proxies whose Forwarded and X-Forwarded-* headers count: addresses, CIDR blocks, "loopback"',
  ).argParser(collect),
  setting(
    '--allowed-hosts <HOST...>',
    'hosts that calls may name beside loopback (HOST, HOST:PORT, .example.com)',
  ).argParser(collect),
  setting('--view <MODE>', '/view and /api/view: as v1 (auto), always redirect, always stream')
    .choices(VIEW_MODES)
    .default('auto'),
  setting(
    '--dialect <DIALECT>',
    'v1 as the local or the hosted server speaks it; auto: the form of each call tells',
  )
    .choices(DIALECTS)
    .default('auto'),
  setting(
    '--preview-method <METHOD>',
    'previews of samplers to browsers and to sockets that negotiated them (default), to all ' +
      'sockets (auto, latent2rgb, taesd), to those that negotiated them (negotiated), to none',
  )
    .choices(PREVIEW_METHODS)
    .default('default'),
  setting('--concurrency <N>', 'jobs the embedded engine runs in parallel; 0: only workers do')
    .default(1)
    .argParser(integer({ min: 0, max: 64 })),
  setting('--queue-limit <N>', 'jobs that may wait in the embedded engine')
    .default(1000)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting('--job-timeout <SECONDS>', 'longest run of one job')
    .default(1800)
    .argParser(integer({ min: 1, max: 604_800 })),
  setting('--job-memory <MB>', 'most memory the pictures and texts of one job may take')
    .default(4096)
    .argParser(integer({ min: 16, max: 1_000_000 })),
  setting('--history-limit <N>', 'history entries kept for each user')
    .default(10_000)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting('--history-size <MB>', 'history kept for each user; the oldest entries go first')
    .default(1024)
    .argParser(decimal({ min: 0.001, max: 1_000_000 })),
  setting(
    '--history-graph-limit <MB>',
    'graph and extra data of one prompt that history keeps whole',
  )
    .default(16)
    .argParser(decimal({ min: 0.001, max: 400 })),
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
    .default(500)
    .argParser(integer({ min: 1, max: 100_000 })),
  setting('--v2-rate <N>', 'requests of one key to /api/v2 in a rolling minute')
    .default(60_000)
    .argParser(integer({ min: 1, max: 100_000_000 })),
  setting('--front-end-root <DIR>', 'folder of a browser front end to serve at /'),
  setting('--input-directory <DIR>', 'plain folder whose files are inputs, and uploads appear in'),
  setting('--output-directory <DIR>', 'plain folder that outputs are written to as well'),
  setting('--userdata-quota <MB>', 'most disk space for the workflows and other files of one user')
    .default(1024)
    .argParser(decimal({ min: 0.001, max: 100_000_000 })),
  setting('--tls-keyfile <FILE>', 'private key (PEM); with --tls-certfile: serve https and wss'),
  setting('--tls-certfile <FILE>', 'certificate chain (PEM) of --tls-keyfile'),
  setting('--deprecation-date <DATE>', 'since when v1 answers say they are deprecated').default(
    DEPRECATION_DATE,
  ),
  setting('--sunset <DATE>', 'when v1 is to end, as v1 answers say'),
  setting(
    '--brownout <SPEC>',
    'rehearse the end of v1: from=TIME,to=TIME,percent=N,delay-ms=MS,client=TEXT; repeatable',
  ).argParser(collect),
  setting(
    '--model-keys <FILE>',
    'who may call the model router; without it: every caller with a key',
  ),
  setting('--model-calls <N>', 'model calls of one workspace that may run at a time')
    .default(8)
    .argParser(integer({ min: 1, max: 10_000 })),
  setting('--model-spend <CENTS>', 'what the running model calls of one workspace may cost')
    .default(1000)
    .argParser(integer({ min: 0, max: 1_000_000_000 })),
  setting('--model-rate <N>', 'model router requests of one key in a rolling minute')
    .default(600)
    .argParser(integer({ min: 1, max: 1_000_000 })),
  setting('--model-timeout <SECONDS>', 'longest run of one model call')
    .default(600)
    .argParser(integer({ min: 1, max: 86_400 })),
  setting('--model-limits <JSON>', 'times and bounds of the model router').default('{}').hideHelp(),
];

function setting(flags: string, help: string): Option {
  const option = new Option(flags, help);
  return option.env(`HOLDOVER_${option.name().replaceAll('-', '_').toUpperCase()}`);
}

/** One of several values of a flag. */
function collect(text: string, earlier: readonly string[] | undefined): readonly string[] {
  return [...(earlier ?? []), text];
}

function integer(range: { min: number; max: number }): (text: string) => number {
  return (text) => requireInRange(range, /^-?\d+$/.test(text) ? Number(text) : Number.NaN);
}

function decimal(range: { min: number; max: number }): (text: string) => number {
  return (text) => requireInRange(range, /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN);
}

function requireInRange({ min, max }: { min: number; max: number }, value: number): number {
  if (value >= min && value <= max) return value;
  throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
}
