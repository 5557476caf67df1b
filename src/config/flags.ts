import { type Command, InvalidArgumentError, Option } from 'commander';
import { InvalidSetting } from './invalid-setting.ts';

/** The value of a flag by its form: `--flag [ARG]`, `--flag <ARG...>`, `--flag <ARG>`, or a switch. */
type ValueOf<Form extends string> = Form extends `${string} [${string}]`
  ? string | true | undefined
  : Form extends `${string} <${string}...>`
    ? readonly string[] | undefined
    : Form extends `${string} <${string}>`
      ? string | undefined
      : boolean | undefined;

/** An option whose name and value the compiler knows. */
class Setting<Form extends string, Value = ValueOf<Form>> extends Option {
  declare readonly flags: Form;
  declare readonly value: Value;

  byDefault(value: Value & {}) {
    return this.default(value) as unknown as Setting<Form, Value & {}>;
  }

  oneOf<const Word extends string>(words: readonly Word[]) {
    return this.choices(words) as unknown as Setting<Form, Word | undefined>;
  }

  integer(min: number, max: number) {
    return this.#number(/^-?\d+$/, min, max);
  }

  decimal(min: number, max: number) {
    return this.#number(/^-?\d+(\.\d+)?$/, min, max);
  }

  /** It may be given several times. */
  several() {
    const collect = (text: string, earlier: readonly string[] = []) => [...earlier, text];
    return this.argParser(collect) as unknown as Setting<Form, readonly string[] | undefined>;
  }

  #number(form: RegExp, min: number, max: number) {
    const parse = (text: string): number => {
      const value = form.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`);
    };
    return this.argParser(parse) as unknown as Setting<Form, number | undefined>;
  }
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const VIEW_MODES = ['auto', 'redirect', 'stream'] as const;
const DIALECTS = ['auto', 'local', 'hosted'] as const;
const PREVIEW_METHODS = ['default', 'auto', 'latent2rgb', 'taesd', 'negotiated', 'none'] as const;
export const ASSET_MODES = ['auto', 'object', 'string'] as const;

/** One row per setting: flag, environment variable, help, default, parser. Names are v1's where v1 has the setting. */
export const OPTIONS = [
  setting('--listen [ADDR]', 'address to bind; bare: 0.0.0.0').byDefault('127.0.0.1'),
  setting('--port <PORT>', 'port to bind; 0 picks a free one').integer(0, 65535).byDefault(8188),
  setting(
    '--upstream <URL>',
    'what runs the jobs: "embedded", or the address of a v2 service',
  ).byDefault('embedded'),
  // No environment variable of its own: HOLDOVER_UPSTREAM_KEY is the key itself, not a file's name.
  flag(
    '--upstream-key <FILE>',
    'file with the one key used for all callers (env: HOLDOVER_UPSTREAM_KEY, the key itself)',
  ),
  setting('--upstream-assets <MODE>', 'how workflows name files upstream')
    .oneOf(ASSET_MODES)
    .byDefault('auto'),
  setting(
    '--upstream-redirects <HOST...>',
    'private hosts (HOST or HOST:PORT) where the upstream may keep its files',
  ),
  setting(
    '--object-info <SOURCE>',
    'node definitions: a file, a URL, "embedded", or "auto" (the upstream, else embedded)',
  ).byDefault('auto'),
  setting('--data-dir <DIR>', 'where everything is kept').byDefault('./data'),
  setting(
    '--files <WHERE>',
    '"folder" in the data directory, or s3://BUCKET/PREFIX: where uploads, outputs and saved files are',
  ).byDefault('folder'),
  setting('--s3-endpoint <URL>', 'server of the bucket; default: that of Amazon S3 in the region'),
  setting(
    '--ledger <URL>',
    '"sqlite" in the data directory, or redis://… shared by several processes',
  ).byDefault('sqlite'),
  setting(
    '--start-anew',
    'start although the ledger is new or damaged: move all files aside first (nothing is removed)',
  ),
  setting('--max-upload-size <MB>', 'largest request body')
    .decimal(0.001, 1_000_000)
    .byDefault(100),
  setting(
    '--enable-cors-header [ORIGIN]',
    'allow this origin instead of checking origins; bare: *',
  ),
  setting('--log-level <LEVEL>', 'how much to log').oneOf(LOG_LEVELS).byDefault('info'),
  setting(
    '--local-token <TOKEN>',
    'only callers presenting this token are served; better set in the environment',
  ),
  setting('--allow-insecure-bind', 'bind beyond loopback without a token'),
  setting('--public-url <URL>', 'address at which callers reach the server, path prefix included'),
  setting(
    '--trust-proxy <ADDRESS...>',
    'proxies whose Forwarded and X-Forwarded-* headers count: addresses, CIDR blocks, "loopback"',
  ),
  setting(
    '--allowed-hosts <HOST...>',
    'hosts that calls may name beside loopback (HOST, HOST:PORT, .example.com)',
  ),
  setting('--view <MODE>', '/view and /api/view: as v1 (auto), always redirect, always stream')
    .oneOf(VIEW_MODES)
    .byDefault('auto'),
  setting(
    '--dialect <DIALECT>',
    'v1 as the local or the hosted server speaks it; auto: the form of each call tells',
  )
    .oneOf(DIALECTS)
    .byDefault('auto'),
  setting(
    '--preview-method <METHOD>',
    'previews of samplers to browsers and to sockets that negotiated them (default), to all ' +
      'sockets (auto, latent2rgb, taesd), to those that negotiated them (negotiated), to none',
  )
    .oneOf(PREVIEW_METHODS)
    .byDefault('default'),
  setting('--concurrency <N>', 'jobs the embedded engine runs in parallel; 0: only workers do')
    .integer(0, 64)
    .byDefault(1),
  setting('--queue-limit <N>', 'jobs that may wait in the embedded engine')
    .integer(1, 1_000_000)
    .byDefault(1000),
  setting('--job-timeout <SECONDS>', 'longest run of one job').integer(1, 604_800).byDefault(1800),
  setting('--job-memory <MB>', 'most memory the pictures and texts of one job may take')
    .integer(16, 1_000_000)
    .byDefault(4096),
  setting('--disk-budget <MB>', 'most disk space for stored files')
    .integer(16, 100_000_000)
    .byDefault(20_480),
  setting('--retention-days <DAYS>', 'how long jobs and their outputs are kept')
    .decimal(0.001, 36_500)
    .byDefault(7),
  setting('--max-sockets <N>', 'WebSocket connections in all').integer(1, 100_000).byDefault(1000),
  setting(
    '--shutdown-delay <SECONDS>',
    'how long calls are still taken when it is to stop, while /healthz answers 503',
  )
    .integer(0, 600)
    .byDefault(0),
  setting('--front-end-root <DIR>', 'folder of a browser front end to serve at /'),
  setting('--input-directory <DIR>', 'plain folder whose files are inputs, and uploads appear in'),
  setting('--output-directory <DIR>', 'plain folder that outputs are written to as well'),
  setting('--tls-keyfile <FILE>', 'private key (PEM); with --tls-certfile: serve https and wss'),
  setting('--tls-certfile <FILE>', 'certificate chain (PEM) of --tls-keyfile'),
  setting('--sunset <DATE>', 'when v1 is to end, as v1 answers say'),
  setting(
    '--brownout <SPEC>',
    'rehearse the end of v1: from=TIME,to=TIME,percent=N,delay-ms=MS,client=TEXT; repeatable',
  ).several(),
  setting(
    '--model-keys <FILE>',
    'who may call the model router; without it: every caller with a key',
  ),
  setting('--limits <JSON>', 'limits without a flag of their own').several().hideHelp(),
];

type CamelCase<Text extends string> = Text extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Text;
type NameOf<Form extends string> = Form extends `--${infer Name} ${string}`
  ? CamelCase<Name>
  : Form extends `--${infer Name}`
    ? CamelCase<Name>
    : never;

/** Parsed flags, by the names that commander makes of them. */
export type Flags = {
  readonly [Row in (typeof OPTIONS)[number] as NameOf<Row['flags']>]: Row['value'];
};

function flag<const Form extends string>(form: Form, help: string): Setting<Form> {
  return new Setting(form, help);
}

/** A flag and its environment variable. */
function setting<const Form extends string>(form: Form, help: string): Setting<Form> {
  const option = flag(form, help);
  return option.env(`HOLDOVER_${option.name().replaceAll('-', '_').toUpperCase()}`);
}

/** Gives a command flags of the server. */
export function addServerOptions(command: Command, names: readonly (keyof Flags)[]): Command {
  const wanted = new Set<string>(names);
  for (const option of OPTIONS) if (wanted.has(option.attributeName())) command.addOption(option);
  return command;
}

/** For commander a switch is on as soon as its variable exists, whatever that says. */
const SWITCHES = new Set(
  OPTIONS.filter((option) => option.isBoolean()).map(({ envVar }) => envVar),
);
const FALSE_TEXT = /^(0|false|no|off)$/i;
const TRUE_TEXT = /^(1|true|yes|on)$/i;

/** Parses arguments and environment. An empty variable counts as absent. */
export function parseFlags(
  command: Command,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): void {
  // commander reads `process.env` only; tests and embedders bring their own.
  const savedEnv = process.env;
  process.env = { ...env };
  for (const [name, text = ''] of Object.entries(env)) {
    const isOff = text === '' || (SWITCHES.has(name) && FALSE_TEXT.test(text));
    if (name.startsWith('HOLDOVER_') && isOff) delete process.env[name];
  }
  try {
    command.parse([...argv], { from: 'user' });
  } finally {
    process.env = savedEnv;
  }
  for (const option of command.options) {
    const { envVar = '' } = option;
    const isRead = command.getOptionValueSource(option.attributeName()) === 'env';
    if (isRead && SWITCHES.has(envVar) && !TRUE_TEXT.test(env[envVar] ?? ''))
      throw new InvalidSetting(`${envVar} must be 1 or 0, not '${env[envVar]}'`);
  }
}
