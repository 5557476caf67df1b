import { type Context, Script, createContext } from 'node:vm';
import { type NodeContext, NodeFailure } from '../node.ts';
import {
  backtrackingEngine,
  type RegexEngine,
  type PythonPattern,
  type RegexFlags,
  type TextMatch,
  pythonPattern,
} from './regex.ts';

export type Search = {
  readonly pattern: string;
  readonly flags: RegexFlags;
  readonly text: string;
  /** The maximum number of matches that are wanted. */
  readonly most: number;
  /** `whether`: only the existence of a match matters, not its index. */
  readonly wanted: 'matches' | 'whether';
};

/** How long a search may take for a short text. A long text has more time (`MS_PER_CHAR`). */
export type SearchLimits = {
  /** The time for one match, while another engine could continue. */
  readonly quickMs: number;
  /** The time for one match of a pattern that no other engine can match. */
  readonly slowMs: number;
  /** The time for all matches of a text. */
  readonly totalMs: number;
};

const SEARCH_LIMITS: SearchLimits = { quickMs: 500, slowMs: 5000, totalMs: 60_000 };

const MS_PER_CHAR = 1 / 10_000;
/** The matches that are kept at a time, and the groups of all of them. */
const BATCH = 1000;
const BATCH_GROUPS = 10_000;
/** How long matches are collected between two checks of the job's stop flag. */
const SLICE_MS = 50;
/** The number of matches between two reads of the clock. */
const MATCHES_PER_CLOCK_READ = 64;

/**
 * Finds the matches of a Python pattern in a text, some at a time. JavaScript's own engine has a
 * short time for each match. After that an engine continues that is linear in the text. When it
 * cannot match the pattern or the text, JavaScript's engine has a longer time, and its end is a
 * `TimeoutError`. Throws SyntaxError for a wrong pattern.
 */
export async function* searchText(
  search: Search,
  context: Pick<NodeContext, 'check'>,
  limits: SearchLimits = SEARCH_LIMITS,
): AsyncGenerator<readonly TextMatch[]> {
  const { text, most } = search;
  const timed = limitsFor(text, limits);
  const endMs = performance.now() + timed.totalMs;
  let attempt = openFirst(search, timed);
  let from = 0;
  for (let left = most; left > 0 && from <= text.length;) {
    context.check();
    const batch: TextMatch[] = [];
    const place = { text, from, wanted: Math.min(left, BATCH) };
    const outcome = gather(batch, attempt, place);
    if (outcome === 'overdue') attempt = await openNext(attempt, search, timed);
    left = outcome === 'over' ? 0 : left - batch.length;
    from = indexAfter(batch.at(-1), place);
    yield batch;
    if (left > 0 && performance.now() > endMs) throw tooSlow(search);
  }
}

/** An engine, and its time for each match. */
type Attempt = {
  readonly kind: 'first' | 'last';
  readonly pattern: PythonPattern;
  readonly engine: RegexEngine;
  readonly limitMs: number;
};

function limitsFor(text: string, { quickMs, slowMs, totalMs }: SearchLimits): SearchLimits {
  const moreMs = text.length * MS_PER_CHAR;
  return { quickMs: quickMs + moreMs, slowMs: slowMs + moreMs, totalMs: totalMs + moreMs };
}

function openFirst({ pattern: source, flags, text }: Search, limits: SearchLimits): Attempt {
  const pattern = runTimed(() => pythonPattern(source, flags), limits.slowMs);
  const engine = runTimed(() => backtrackingEngine(pattern, text), limits.slowMs);
  return { kind: 'first', pattern, engine, limitMs: limits.quickMs };
}

async function openNext(
  { kind, pattern, engine }: Attempt,
  search: Search,
  limits: SearchLimits,
): Promise<Attempt> {
  if (kind === 'last') throw tooSlow(search);
  const linear = await openLinear(pattern, search, limits);
  if (linear) return { kind: 'last', pattern, engine: linear, limitMs: limits.totalMs };
  return { kind: 'last', pattern, engine, limitMs: limits.slowMs };
}

type Span = { readonly text: string; readonly from: number; readonly wanted: number };

function gather(
  batch: TextMatch[],
  { engine, limitMs }: Attempt,
  span: Span,
): 'more' | 'over' | 'overdue' {
  try {
    return runWithDeadline(() => fill(batch, engine, span), limitMs);
  } catch (error) {
    if (error instanceof DeadlineExceeded) return 'overdue';
    throw error;
  }
}

/** Collects matches for a limited time. The matches so far count even after an interruption. */
function fill(batch: TextMatch[], engine: RegexEngine, span: Span): 'more' | 'over' {
  const untilMs = performance.now() + SLICE_MS;
  for (let at = span.from; batch.length < span.wanted; at = indexAfter(batch.at(-1), span)) {
    const match = at <= span.text.length ? engine.next(at) : undefined;
    if (!match) return 'over';
    batch.push(match);
    if (batch.length * match.groups.length >= BATCH_GROUPS) return 'more';
    if (batch.length % MATCHES_PER_CLOCK_READ === 0 && performance.now() > untilMs) return 'more';
  }
  return 'more';
}

/** Returns the index to search from after a match; after an empty match, one character on. */
function indexAfter(match: TextMatch | undefined, { text, from }: Omit<Span, 'wanted'>): number {
  if (!match) return from;
  const length = match.groups[0]?.length ?? 0;
  if (length > 0) return match.index + length;
  return match.index + ((text.codePointAt(match.index) ?? 0) > 0xffff ? 2 : 1);
}

/** Opens the linear engine. It is loaded on demand, since most patterns never need it. */
async function openLinear(
  pattern: PythonPattern,
  { text, wanted }: Search,
  { slowMs }: SearchLimits,
): Promise<RegexEngine | undefined> {
  const { linearEngine } = await import('./linear.ts');
  return runTimed(() => linearEngine(pattern, { text, wanted }), slowMs);
}

/** Runs a task within a time limit: a pattern may be so long that to read it takes too long. */
function runTimed<T>(task: () => T, limitMs: number): T {
  try {
    return runWithDeadline(task, limitMs);
  } catch (error) {
    if (!(error instanceof DeadlineExceeded)) throw error;
    throw new NodeFailure('TimeoutError', 'this regular expression is too complex', {
      cause: error,
    });
  }
}

function tooSlow({ pattern, text }: Search): NodeFailure {
  const shown = pattern.length > 80 ? `${pattern.slice(0, 80)}…` : pattern;
  return new NodeFailure(
    'TimeoutError',
    `the regular expression ${shown} takes too long on this text of ${text.length} characters; ` +
      'only patterns without lookaround, backreferences and large counts can be matched in linear time',
  );
}

/** Thrown when a task took too long, or needed more stack than exists. */
class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded';
}

type Runner = { readonly script: Script; readonly context: Context };
let runner: Runner | undefined;

/**
 * Runs a synchronous task. Throws `DeadlineExceeded` when it is not over after `limitMs`, whatever
 * it is doing. Node's `vm` can end a running regular expression; nothing else in this thread can.
 */
function runWithDeadline<T>(task: () => T, limitMs: number): T {
  const { script, context } = (runner ??= openRunner());
  context['task'] = task;
  try {
    return script.runInContext(context, { timeout: Math.max(1, Math.ceil(limitMs)) }) as T;
  } catch (error) {
    throw isOverdue(error) ? new DeadlineExceeded('the time is over', { cause: error }) : error;
  } finally {
    context['task'] = undefined;
  }
}

function openRunner(): Runner {
  return { script: new Script('task()'), context: createContext({ task: undefined }) };
}

/** V8 keeps the backtracking state of a regular expression on a separate, limited stack. */
function isOverdue(error: unknown): boolean {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return true;
  return error instanceof RangeError && /call stack/.test(String(message));
}
