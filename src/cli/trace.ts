import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command, Option } from 'commander';
import { type Config, parseConfig } from '../config/config.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { startServer } from '../app/server.ts';
import { LANGUAGES, type Language } from '../migration/session-code.ts';
import { planFrom } from '../migration/plan-session.ts';
import { withoutSecrets } from '../migration/without-secrets.ts';
import { SessionRecorder } from '../migration/session-recorder.ts';
import { createLogger } from '../observability/log.ts';
import { DEFAULT_URL } from './shared-options.ts';
import { stopSignal } from './stop-signal.ts';
import { callTable, printCode, writeCode } from './trace-write.ts';

type TraceOptions = {
  readonly out: string | undefined;
  readonly format: Language | 'all';
  readonly command: readonly string[];
};

/** `holdover trace -- COMMAND`: writes a v1 session as v2 code. Resolves with the exit code. */
export async function traceCommand(argv: readonly string[]): Promise<number> {
  const command = traceOptions();
  const parsed = parseConfig(argv, process.env, command);
  if (parsed.kind === 'exit') {
    (parsed.code === 0 ? process.stdout : process.stderr).write(parsed.text);
    return parsed.code;
  }
  const isDefault = (name: string): boolean => command.getOptionValueSource(name) === 'default';
  const { out, format } = command.opts<Pick<TraceOptions, 'out' | 'format'>>();
  if (command.args.length === 0 && isDefault('port')) {
    process.stderr.write(
      'error: say which COMMAND to run (after --), or which --port to listen on\n',
    );
    return 2;
  }
  const tempDir = isDefault('dataDir') && (await mkdtemp(join(tmpdir(), 'holdover-trace-')));
  const config = {
    ...parsed.config,
    ...(isDefault('port') && { port: 0 }),
    ...(isDefault('logLevel') && { logLevel: 'warn' as const }),
    ...(tempDir && { dataDir: tempDir }),
  };
  try {
    return await runTrace(config, { out, format, command: command.args });
  } catch (error) {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    if (tempDir) await rm(tempDir, { recursive: true, force: true });
  }
}

function traceOptions(): Command {
  return new Command('holdover trace')
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

async function runTrace(config: Config, options: TraceOptions): Promise<number> {
  const sessionRecorder = new SessionRecorder();
  const log = createLogger({ level: config.logLevel });
  const server = await startServer(config, log, { nodes: ALL_NODES, sessionRecorder });
  process.stderr.write(`holdover trace: listening on ${server.url}\n`);
  try {
    // Without --out, standard output has the code and nothing else.
    const output = options.out === undefined ? 'to standard error' : 'as it is';
    const code = await runScript(options.command, server.url, output);
    await writeSession(sessionRecorder, config, options);
    return code;
  } finally {
    await server.close();
  }
}

async function writeSession(
  sessionRecorder: SessionRecorder,
  config: Config,
  options: TraceOptions,
): Promise<void> {
  const { upstream } = config;
  const upstreamKey = upstream.kind === 'remote' ? (upstream.key ?? '') : '';
  const secrets = [...sessionRecorder.secrets(), upstreamKey, config.localToken ?? ''];
  const session = withoutSecrets(await sessionRecorder.session(), secrets);
  process.stderr.write(callTable(session.calls));
  const code = {
    plan: planFrom(session),
    languages: options.format === 'all' ? LANGUAGES : [options.format],
    baseUrl: upstream.kind === 'embedded' ? DEFAULT_URL : addressOf(upstream.url),
  };
  if (options.out === undefined) printCode(code);
  else await writeCode(code, { dir: options.out, sessionRecorder, calls: session.calls });
}

/** Returns the base URL for the SDKs, which append `/api/v2` themselves. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/(^|[^/])\/+$/, '$1').replace(/\/api\/v2$/, '');
}

/** Runs a v1 script against a server. Without a script, waits for Ctrl-C. Returns the exit code. */
async function runScript(
  command: readonly string[],
  url: string,
  output: 'as it is' | 'to standard error',
): Promise<number> {
  const stopped = stopSignal();
  const { host } = new URL(url);
  const [program, ...args] = command.map((part) =>
    part.replaceAll('{server}', host).replaceAll('{url}', url),
  );
  if (program === undefined) return stopped.then(() => 0);
  const addresses = { COMFYUI_SERVER: host, SERVER_ADDRESS: host };
  const child = spawn(program, args, {
    stdio: ['inherit', output === 'as it is' ? 'inherit' : 2, 'inherit'],
    env: { ...process.env, ...addresses, COMFYUI_URL: url, HOLDOVER_URL: url },
  });
  // A terminal sends Ctrl-C to both processes. A signal to this process alone must be forwarded.
  void stopped.then((signal) => child.kill(signal));
  const [code, signal] = (await once(child, 'exit').catch((cause: unknown) => {
    throw new Error(`${program} cannot be run`, { cause });
  })) as [number | null, NodeJS.Signals | null];
  if (signal) process.stderr.write(`holdover trace: ${program} was ended by ${signal}\n`);
  else if (code !== 0) process.stderr.write(`holdover trace: ${program} ended with ${code}\n`);
  return code ?? 1;
}
