import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { env, geteuid, pid } from 'node:process';
import { cachedDataVersionTag, getHeapCodeStatistics } from 'node:v8';
import { Script } from 'node:vm';
import { crc32 } from 'node:zlib';
import { withDefaultOptimization } from './delay-optimization.ts';

/**
 * Exported from here, since this module is a file of its own in the bundle: V8's settings have one
 * state.
 */
export { delayOptimization } from './delay-optimization.ts';

type Module = { exports: unknown };
type ModuleFunction = (
  exports: unknown,
  require: (id: string) => unknown,
  module: Module,
  filename: string,
  dirname: string,
  importOutside: (id: string) => Promise<unknown>,
) => void;

const PARAMETERS = 'exports, require, module, __filename, __dirname, importOutside';

const modules = new Map<string, Module>();
/** The scripts by the file of the cache. */
const scripts = new Map<string, Script>();
/**
 * The size of the end of a file: how much code V8 had compiled when the data was made, and the CRC
 * of the data.
 */
const TRAILER_BYTES = 8;
/** The data is replaced when the compiled code has grown by this factor. */
const GROWTH = 1.1;
/** Long after the start and the first calls. */
const SAVE_AFTER_MS = 10_000;

/**
 * Loads a CommonJS file of the bundle, and the files of the bundle that it requires, with the code
 * that V8 compiled at an earlier start. Without that code a start takes longer; nothing else
 * changes.
 *
 * @public The files that start the bundle call it.
 */
export function loadBundled(path: string): unknown {
  const known = modules.get(path);
  if (known) return known.exports;
  const module: Module = { exports: {} };
  modules.set(path, module);
  const requireOutside = createRequire(path);
  // Node itself has loaded this module.
  if (path === import.meta.filename) return (module.exports = requireOutside(path));
  const folder = dirname(path);
  const require = (id: string): unknown =>
    id.startsWith('.') ? loadBundled(resolve(folder, id)) : requireOutside(id);
  const run = compile(path).runInThisContext() as ModuleFunction;
  run(module.exports, require, module, path, folder, (id) => import(id));
  return module.exports;
}

/**
 * Saves the code that V8 has compiled at the end of the start, and again when the process ends, for
 * later starts.
 */
export function saveCompiledCode(): void {
  setTimeout(saveAll, SAVE_AFTER_MS).unref();
  process.once('exit', saveAll);
}

function compile(path: string): Script {
  const source = readFileSync(path);
  // The whole text is ASCII.
  const code = `(function (${PARAMETERS}) {${source.toString('latin1')}\n})`;
  return withDefaultOptimization(() => {
    const cacheFile = cacheFileOf(path, source);
    const cachedData = cacheFile === undefined ? undefined : readCache(cacheFile);
    const script = new Script(code, { filename: path, cachedData });
    if (cacheFile !== undefined) scripts.set(cacheFile, script);
    if (!cachedData || script.cachedDataRejected) savedBytes = 0;
    return script;
  });
}

let cacheFolder: string | undefined | null = null;

/** Returns the cache file of a script. V8 itself compares only the length of the source. */
function cacheFileOf(path: string, source: Buffer): string | undefined {
  cacheFolder = cacheFolder === null ? openCacheFolder() : cacheFolder;
  if (cacheFolder === undefined) return undefined;
  const [content, v8] = [crc32(source), cachedDataVersionTag()].map((n) => n.toString(16));
  return join(cacheFolder, `${basename(path)}-${content}-${v8}`);
}

/** Opens the cache folder of the user of this process. */
function openCacheFolder(): string | undefined {
  try {
    const folder = join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'holdover');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(folder);
    // Code from the folder is run, so no other user may write to it.
    return uid === geteuid?.() && (mode & 0o022) === 0 ? folder : undefined;
  } catch {
    // Without a home folder, or on a read-only disk, everything is compiled again.
    return undefined;
  }
}

/** The bytes of V8's code when the saved data was made: the minimum of all files. */
let savedBytes = Infinity;

/**
 * Reads a cache file. `undefined`: there is none yet, or a power cut has damaged it. V8 would
 * accept wrong bytes and crash.
 */
function readCache(file: string): Buffer | undefined {
  try {
    const bytes = readFileSync(file);
    const data = bytes.subarray(0, -TRAILER_BYTES);
    if (crc32(data) !== bytes.readUInt32LE(data.length + 4)) return undefined;
    savedBytes = Math.min(savedBytes, bytes.readUInt32LE(data.length));
    return data;
  } catch {
    return undefined;
  }
}

/** Saves all scripts. The code of the first prompts is compiled later than that of the start. */
function saveAll(): void {
  const codeBytes = getHeapCodeStatistics().bytecode_and_metadata_size;
  if (codeBytes <= savedBytes * GROWTH) return;
  savedBytes = codeBytes;
  for (const [file, script] of scripts) {
    try {
      const data = withDefaultOptimization(() => script.createCachedData());
      const trailer = Buffer.alloc(TRAILER_BYTES);
      trailer.writeUInt32LE(codeBytes);
      trailer.writeUInt32LE(crc32(data), 4);
      const partial = `${file}.${pid}`;
      writeFileSync(partial, Buffer.concat([data, trailer]), { mode: 0o600 });
      renameSync(partial, file);
    } catch {
      // The next start compiles the code again.
    }
  }
}
