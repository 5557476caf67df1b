/**
 * The upstream of a server under test: its own engine, another Holdover behind it, or, with one worker, the
 * services of deploy/compose.yaml.
 */
export type TestedUpstream = 'embedded' | 'remote' | 'stack';

/** As the test project says (vitest.config.ts), or who runs it. */
export function testedUpstream(): TestedUpstream {
  const named = process.env['HOLDOVER_TEST_UPSTREAM'];
  return named === 'remote' || named === 'stack' ? named : 'embedded';
}

/** Settings of what runs the jobs. */
const ENGINE_FLAGS = new Set([
  '--concurrency',
  '--queue-limit',
  '--job-timeout',
  '--job-memory',
  '--disk-budget',
  '--retention-days',
]);
/** Flags of both servers: the one behind must accept the uploads that the one in front accepts. */
const COMMON_FLAGS = new Set(['--max-upload-size']);

/** The arguments of one server, dealt out to servers that run no jobs and to their worker. */
export function argsOfStack(args: readonly string[]): {
  readonly server: readonly string[];
  readonly worker: readonly string[];
} {
  const at = args.indexOf('--concurrency');
  if (at < 0) return { server: args, worker: [] };
  return { server: args.toSpliced(at, 2), worker: args.slice(at, at + 2) };
}

/** The arguments of one server, dealt out to the one in front and the one behind it. */
export function argsOfPair(args: readonly string[]): {
  readonly front: readonly string[];
  readonly behind: readonly string[];
} {
  const settings: string[][] = [];
  for (const arg of args) {
    if (arg.startsWith('--')) settings.push([arg]);
    else settings.at(-1)?.push(arg);
  }
  const named = (flags: ReadonlySet<string>) =>
    settings.filter(([name = '']) => flags.has(name)).flat();
  const engine = new Set(named(ENGINE_FLAGS));
  return {
    front: settings.filter(([name = '']) => !engine.has(name)).flat(),
    behind: [...named(ENGINE_FLAGS), ...named(COMMON_FLAGS)],
  };
}
