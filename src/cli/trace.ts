import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, Option } from 'commander';
import { type Config, parseConfig } from '../config.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { startServer } from '../server.ts';
import { LANGUAGES, type Language } from '../session/code.ts';
import { planOf } from '../session/planner.ts';
import { withoutSecrets } from '../session/without-secrets.ts';
import { type Tap, createTap } from '../tap.ts';
import { createLogger } from '../telemetry.ts';
import { runCommand } from './trace-run.ts';
import { callTable, printCode, writeCode } from './trace-write.ts';

type Wanted = {
  readonly out: string | undefined;
  readonly format: Language | 'all';
  readonly command: readonly string[];
};

/** What differs from a server's own settings, where nobody said anything. */
const QUIET = { port: 0, logLevel: 'warn' } as const;

/** `holdover trace -- COMMAND`: writes a v1 session down as v2 code. Resolves with the exit code. */
export async function traceCommand(argv: readonly string[]): Promise<number> {
  let line: Command | undefined;
  const parsed = parseConfig(argv, process.env, (command) => (line = describe(command)));
  if (parsed.kind === 'exit' || !line) {
    const { code, text } = parsed as { code: number; text: string };
    (code === 0 ? process.stdout : process.stderr).write(text);
    return code;
  }
  const isDefault = (name: string): boolean => line?.getOptionValueSource(name) === 'default';
  const { out, format } = line.opts<Pick<Wanted, 'out' | 'format'>>();
  const wanted = { out, format, command: line.args };
  if (wanted.command.length === 0 && isDefault('port')) {
    process.stderr.write(
      'error: say which COMMAND to run (after --), or which --port to listen on\n',
    );
    return 2;
  }
  const config = {
    ...parsed.config,
    ...(isDefault('port') && { port: QUIET.port }),
    ...(isDefault('logLevel') && { logLevel: QUIET.logLevel }),
  };
  try {
    return isDefault('dataDir') ? await traceApart(config, wanted) : await trace(config, wanted);
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

/** Nothing of it is kept. */
async function traceApart(config: Config, wanted: Wanted): Promise<number> {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-trace-'));
  try {
    return await trace({ ...config, dataDir }, wanted);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

function describe(command: Command): Command {
  return command
    .name('holdover trace')
    .usage('[options] [-- COMMAND [ARGUMENTS]]')
    .description(
      'Runs a v1 script through a Holdover and writes what it did as v2 code. COMMAND gets the address ' +
        'in COMFYUI_SERVER and SERVER_ADDRESS (host:port), in COMFYUI_URL and HOLDOVER_URL (http://…), ' +
        'and wherever its arguments say {server} or {url}. For a script with the address written into ' +
        'it, give that --port; with --port alone it listens until Ctrl-C.',
    )
    .argument('[command...]', 'the script and its arguments, after --')
    .option('--out <DIR>', 'folder for the code, the workflows and the files; else standard output')
    .addOption(
      new Option('--format <FORMAT>', 'what to write')
        .choices([...LANGUAGES, 'all'])
        .default('all'),
    );
}

async function trace(config: Config, wanted: Wanted): Promise<number> {
  const tap = createTap();
  const log = createLogger({ level: config.logLevel });
  const server = await startServer(config, log, { nodes: ALL_NODES, tap });
  process.stderr.write(`holdover trace: listening on ${server.url}\n`);
  try {
    const code = await runCommand(wanted.command, {
      url: server.url,
      // Standard output is for the code, unless that goes into files.
      output: wanted.out === undefined ? 'to standard error' : 'as it is',
    });
    await write(tap, { config, wanted });
    return code;
  } finally {
    await server.close();
  }
}

async function write(
  tap: Tap,
  { config, wanted }: { readonly config: Config; readonly wanted: Wanted },
): Promise<void> {
  const { upstream } = config;
  const upstreamKey = upstream.kind === 'remote' ? (upstream.key ?? '') : '';
  const ours = [upstreamKey, config.localToken ?? ''];
  const session = withoutSecrets(await tap.session(), [...tap.secrets(), ...ours]);
  process.stderr.write(callTable(session.calls));
  const code = {
    plan: planOf(session),
    languages: wanted.format === 'all' ? LANGUAGES : [wanted.format],
    baseUrl: upstream.kind === 'embedded' ? OWN_ADDRESS : addressOf(upstream.url),
  };
  if (wanted.out === undefined) printCode(code);
  else await writeCode(code, { dir: wanted.out, tap, calls: session.calls });
}

/** Where `holdover` serves v2 when nothing else is said. */
const OWN_ADDRESS = 'http://127.0.0.1:8188';

/** As the SDKs want it: they append `/api/v2` themselves. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/\/+$/, '').replace(/\/api\/v2$/, '');
}
