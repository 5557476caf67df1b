import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import { type Limits, engineLimits, readLimits } from './limits.ts';
import { MEBIBYTE, parseUrl } from './parse-values.ts';
import { type Flags, OPTIONS, parseFlags } from './flags.ts';
import { sharedDirectories } from './shared-folders.ts';
import { type LedgerSource, ledgerSource } from './ledger.ts';
import { deprecationSettings } from './deprecation.ts';
import { proxySettings } from './proxy.ts';
import { filesSource } from './files.ts';
import { InvalidSetting } from './invalid-setting.ts';
import { tracingSettings } from './tracing.ts';
import { objectInfoSource, upstreamOf } from './upstream.ts';
import { packageVersion } from './version.ts';
import { createSecureContext } from 'node:tls';

/** All settings, parsed once and frozen. */
export type Config = ReturnType<typeof configFrom>;

export type { Upstream } from './upstream.ts';

export type ParsedConfig =
  | { readonly kind: 'config'; readonly config: Config }
  /** `text` is what to print: help, the version, or what is wrong with a flag. */
  | { readonly kind: 'exit'; readonly code: number; readonly text: string };

const OTHER_COMMANDS = `
Other commands (each has its own --help):
  holdover backup DIR        copy all records and files, also while the server runs
  holdover restore DIR       put a backup into any empty ledger and place of files
  holdover check             check the database and every file, list what no record names
  holdover import DIR        take over the files of a v1 server
  holdover report            show who still calls v1, and what v2 has in its place
  holdover trace -- COMMAND  run a v1 script and write its session down as v2 code
  holdover convert FILE      turn a v1 prompt or workflow into a v2 submission
  holdover worker            run jobs for servers that share a ledger in Redis`;

/** Reads flags and environment; a wrong one becomes one clear line and exit code 2. */
export function parseConfig(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  /** Gets the options of the server. Another command that starts a server has some of its own. */
  command: Command = new Command('holdover')
    .description('Keeps unchanged v1 workflow clients working on the v2 job API.')
    .addHelpText('after', OTHER_COMMANDS),
): ParsedConfig {
  let text = '';
  command
    .version(packageVersion())
    .exitOverride()
    .configureOutput({
      writeOut: (chunk) => (text += chunk),
      writeErr: (chunk) => (text += chunk),
    });
  for (const option of OPTIONS) command.addOption(option);
  const exit = (code: number, shown: string) => ({ kind: 'exit', code, text: shown }) as const;
  try {
    parseFlags(command, argv, env);
    return { kind: 'config', config: configFrom(command.opts<Flags>(), env) };
  } catch (error) {
    if (error instanceof InvalidSetting) return exit(2, `error: ${error.message}\n`);
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return exit(0, text);
    return exit(2, `${error.message.replaceAll('\n', ' ')}\n`);
  }
}

/** True when an address can only be reached from this machine. */
export function isLoopback(address: string): boolean {
  return address === 'localhost' || address === '::1' || /^127\.\d+\.\d+\.\d+$/.test(address);
}

function configFrom(flags: Flags, env: NodeJS.ProcessEnv) {
  const listen = listenAddress(flags);
  const ledger = ledgerOf(flags);
  const origin = corsOrigin(flags.enableCorsHeader);
  const limits = readLimits(flags.limits);
  return Object.freeze({
    listen,
    port: flags.port,
    upstream: upstreamOf(flags, limits, env),
    /** Where node definitions come from; `auto`: the upstream's own, else the embedded library's. */
    objectInfo: objectInfoSource(flags.objectInfo),
    dataDir: flags.dataDir,
    ledger,
    files: filesSource(flags, env),
    /** Files that no ledger knows are moved aside instead of being refused. */
    startAnew: flags.startAnew ?? false,
    workerLimits: limits.workers,
    ...clientLimits(flags, limits),
    /** The assets API of v1. */
    assets: limits.assets,
    /** `undefined`: the origin check is on; else the value of `Access-Control-Allow-Origin`. */
    corsOrigin: origin,
    logLevel: flags.logLevel,
    localToken: localToken(flags.localToken),
    view: flags.view,
    dialect: flags.dialect,
    previewMethod: flags.previewMethod,
    engine: { ...engineLimits(flags), maxQueued: flags.queueLimit },
    shutdownDelayMs: flags.shutdownDelay * 1000,
    /** Folder of the browser front end served at `/`; `undefined`: Holdover's own page is there. */
    frontEndRoot: readFrontendRoot(flags.frontEndRoot),
    folders: sharedDirectories(flags),
    models: { keysFile: modelKeysFile(flags.modelKeys), limits: limits.models },
    deprecationSettings: deprecationSettings(flags),
    proxy: proxySettings(flags),
    /** `undefined`: plain HTTP. */
    tls: readTls(flags),
    tracing: tracingSettings(env),
  });
}

/** The limits for what clients send, keep and open. */
function clientLimits(flags: Flags, limits: Limits) {
  return {
    /** Prompts of one user that may wait until the upstream has capacity. */
    outboxLimit: limits.outboxPrompts,
    maxUploadBytes: Math.round(flags.maxUploadSize * MEBIBYTE),
    maxJsonValues: limits.jsonValues,
    /** Of one graph. */
    maxNodes: limits.graphNodes,
    /** Of each user: entries, their bytes, and the bytes of one entry's graph. */
    history: limits.history,
    maxSockets: flags.maxSockets,
    maxSocketsPerUser: limits.socketsPerUser ?? Math.ceil(flags.maxSockets / 2),
    v2RequestsPerMinute: limits.v2RequestsPerMinute,
    userdataQuotaBytes: limits.userdataBytes,
  };
}

function listenAddress(flags: Flags): string {
  const listen = flags.listen === true ? '0.0.0.0' : flags.listen;
  requireListenAddress(listen);
  refuseInsecureBind(listen, flags);
  return listen;
}

function ledgerOf(flags: Flags): LedgerSource {
  if (flags.dataDir === '')
    throw new InvalidSetting("option '--data-dir' needs the name of a folder");
  const ledger = ledgerSource(flags.ledger);
  // Without a shared queue no other process could run the jobs.
  if (flags.concurrency === 0 && ledger.kind === 'sqlite')
    throw new InvalidSetting(
      "option '--concurrency' may be 0 only with '--ledger redis://…' and workers",
    );
  return ledger;
}

/**
 * Refuses a token that no caller could present: headers lose blanks around a key, and cannot have
 * control characters.
 */
function localToken(text = ''): string | undefined {
  if (text === text.trim() && !/\p{Cc}/u.test(text)) return text || undefined;
  throw new InvalidSetting(
    "option '--local-token' may have no blanks around it, and no control characters",
  );
}

/** Returns the folder of a front end. Throws when it has no `index.html`. */
function readFrontendRoot(folder: string | undefined): string | undefined {
  if (folder === undefined) return undefined;
  if (folder !== '' && existsSync(join(folder, 'index.html'))) return resolve(folder);
  throw new InvalidSetting(
    `option '--front-end-root' needs a folder with an index.html, not '${folder}'`,
  );
}

/** Returns the file of the keys that may call the model router; without one every key may. */
function modelKeysFile(file: string | undefined): string | undefined {
  if (file === undefined || existsSync(file)) return file;
  throw new InvalidSetting(`option '--model-keys': there is no file '${file}'`);
}

function requireListenAddress(listen: string): void {
  if (listen === 'localhost' || isIP(listen) !== 0) return;
  throw new InvalidSetting(`option '--listen' needs an IP address or "localhost", not '${listen}'`);
}

function refuseInsecureBind(listen: string, flags: Flags): void {
  if (isLoopback(listen) || flags.localToken || flags.allowInsecureBind) return;
  throw new InvalidSetting(
    `binding ${listen} lets anyone who reaches this machine run jobs and read files: ` +
      'set --local-token (HOLDOVER_LOCAL_TOKEN), or say --allow-insecure-bind if that is meant',
  );
}

/** An origin as browsers write it: they compare the answer with it character by character. */
function corsOrigin(text: Flags['enableCorsHeader']): string | undefined {
  if (text === undefined) return undefined;
  if (text === true || text === '*') return '*';
  const url = parseUrl(text);
  if (url && /^https?:$/.test(url.protocol)) return url.origin;
  throw new InvalidSetting(
    `option '--enable-cors-header' needs * or an origin such as http://localhost:3000, not '${text}'`,
  );
}

/** A private key and the certificate chain that belongs to it, as PEM. */
type TlsFiles = { readonly key: Buffer; readonly cert: Buffer };

/** Both files or none; a pair that cannot work is refused at the start. */
function readTls({ tlsKeyfile, tlsCertfile }: Flags): TlsFiles | undefined {
  if (tlsKeyfile === undefined && tlsCertfile === undefined) return undefined;
  if (tlsKeyfile === undefined || tlsCertfile === undefined) {
    throw new InvalidSetting("options '--tls-keyfile' and '--tls-certfile' need each other");
  }
  try {
    const files = { key: readFileSync(tlsKeyfile), cert: readFileSync(tlsCertfile) };
    createSecureContext(files);
    return files;
  } catch (error) {
    // OpenSSL's reason without its place in the sources.
    const { reason, message } = error as Error & { reason?: string };
    throw new InvalidSetting(
      `options '--tls-keyfile' and '--tls-certfile': '${tlsKeyfile}' and '${tlsCertfile}' cannot be used ` +
        `together (${reason ?? message})`,
    );
  }
}
