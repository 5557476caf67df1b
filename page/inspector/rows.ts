import type { NamedEntry } from './store.ts';

type Kind = 'calls' | 'frames' | 'events' | 'all';

export type TrafficFilter = {
  readonly kind: Kind;
  readonly text: string;
  readonly promptId: string;
  readonly isErrorOnly: boolean;
};

/**
 * A line of the list: what came first on one side, and what followed from it on the other. A v1 call is
 * on the left with the v2 calls it became; a v2 event is on the right with the v1 frames it became.
 */
export type Line = {
  readonly name: string;
  readonly atMs: number;
  readonly first: NamedEntry;
  readonly side: 'v1' | 'v2';
  readonly became: readonly NamedEntry[];
  readonly promptId: string | null;
};

/** Events of a step come many times a second: those in a row of one prompt are one line. */
const REPEATED = new Set(['progress', 'preview', 'x_node', 'progress_state']);

export function linesOf(entries: readonly NamedEntry[]): readonly Line[] {
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  const became = new Map<string, NamedEntry[]>();
  const firsts: NamedEntry[] = [];
  for (const entry of entries) {
    const leader = leaderOf(entry, byName);
    if (leader === undefined) firsts.push(entry);
    else addTo(became, leader.name, entry);
  }
  return firsts.map((first) => ({
    name: first.name,
    atMs: first.at_ms,
    first,
    side: first.kind === 'call' || first.kind === 'frame' ? 'v1' : 'v2',
    became: became.get(first.name) ?? [],
    promptId:
      first.prompt_id ??
      became.get(first.name)?.find(({ prompt_id: id }) => id !== null)?.prompt_id ??
      null,
  }));
}

function addTo(lists: Map<string, NamedEntry[]>, name: string, entry: NamedEntry): void {
  const list = lists.get(name);
  if (list) list.push(entry);
  else lists.set(name, [entry]);
}

/** The entry whose line this one is on; `undefined`: it has a line of its own. */
function leaderOf(
  entry: NamedEntry,
  byName: ReadonlyMap<string, NamedEntry>,
): NamedEntry | undefined {
  const cause = entry.causeName === undefined ? undefined : byName.get(entry.causeName);
  if (cause === undefined) return undefined;
  if (entry.kind === 'v2_call' && cause.kind === 'call') {
    return isWithin(entry, cause) ? cause : undefined;
  }
  // A stream of events is a call of its own, and each event has its line.
  if (entry.kind !== 'frame') return undefined;
  return leaderOf(cause, byName) === undefined ? cause : undefined;
}

/** Answers are measured on the way out: a call that follows at once may have begun before. */
const SLACK_MS = 20;

/** A call that was made later, as to ask for a job that has ended, stands at its own time; the stream of a new job does not. */
function isWithin(entry: NamedEntry, cause: NamedEntry): boolean {
  if (cause.ms === null || entry.target?.endsWith('/events') === true) return true;
  return entry.at_ms <= cause.at_ms + cause.ms + SLACK_MS;
}

export function isShown(line: Line, { kind, text, promptId, isErrorOnly }: TrafficFilter): boolean {
  const { first, became } = line;
  if (
    promptId !== '' &&
    first.prompt_id !== promptId &&
    !became.some((one) => one.prompt_id === promptId)
  )
    return false;
  if (kind === 'calls' && first.kind !== 'call' && first.kind !== 'v2_call') return false;
  if (kind === 'events' && first.kind !== 'v2_event') return false;
  if (kind === 'frames' && first.kind !== 'frame' && !became.some((one) => one.kind === 'frame'))
    return false;
  if (isErrorOnly && ![first, ...became].some(isError)) return false;
  if (text === '') return true;
  const wanted = text.toLowerCase();
  return [first, ...became].some((one) => textOf(one).toLowerCase().includes(wanted));
}

export function isError({ status, type, method }: NamedEntry): boolean {
  // The answer to a question, not a failure.
  if (method === 'HEAD' && status === 404) return false;
  return (status !== undefined && (status >= 400 || status === 0)) || type === 'execution_error';
}

/** The texts that a search looks through. */
function textOf(entry: NamedEntry): string {
  const { method = '', target = '', status, agent, client_id: clientId, type, text } = entry;
  const { prompt_id: promptId, job_id: jobId, sid } = entry;
  const call = `${method} ${target}`;
  return [call, status, agent, clientId, type, text, promptId, jobId, sid].join('\n');
}

/** A line of the list that may stand for several. */
export type Row = Line & {
  /** The first entry of each line that was joined to this one, in their order; this one's included. */
  readonly joined: readonly NamedEntry[];
};

/** A poll that comes later is a new row. */
const POLL_GAP_MS = 15_000;

/**
 * Joins what repeats itself: steps of one prompt that follow each other, of which the last is shown, and
 * polls of one route with the same answer, whatever came between them.
 */
export function joinLines(lines: readonly Line[]): readonly Row[] {
  const rows: (Row & { joined: NamedEntry[] })[] = [];
  const polls = new Map<string, Row & { joined: NamedEntry[] }>();
  for (const line of lines) {
    const last = rows.at(-1);
    const route = pollOf(line);
    const poll = route === undefined ? undefined : polls.get(route);
    if (last !== undefined && isSameStep(last, line)) {
      rows[rows.length - 1] = { ...line, joined: [...last.joined, line.first] };
    } else if (poll !== undefined && isSameAnswer(poll, line)) {
      poll.joined.push(line.first);
    } else {
      const row = { ...line, joined: [line.first] };
      rows.push(row);
      if (route !== undefined) polls.set(route, row);
    }
  }
  return rows;
}

function isSameStep(last: Line, line: Line): boolean {
  const { type } = line.first;
  return (
    type !== undefined &&
    REPEATED.has(type) &&
    last.first.type === type &&
    last.promptId === line.promptId &&
    last.side === line.side
  );
}

/** The caller and the route of a call that only asks; `undefined`: it does more, or has not ended. */
function pollOf({ first, became, promptId }: Line): string | undefined {
  const { kind, method, target, status, ms } = first;
  const isCall = kind === 'call' || kind === 'v2_call';
  if (!isCall || ms === null || status === 101 || !onlyReads(method)) return undefined;
  if (became.some((one) => one.kind !== 'v2_call' || !onlyReads(one.method))) return undefined;
  const caller = [first.agent, first.client_id, first.is_other_user, promptId];
  return [kind, method, target, first.job_id, ...caller].join(' ');
}

function onlyReads(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

function isSameAnswer({ first, joined }: Row, line: Line): boolean {
  const previousMs = joined.at(-1)?.at_ms ?? 0;
  return (
    first.status === line.first.status &&
    first.response_bytes === line.first.response_bytes &&
    line.atMs - previousMs < POLL_GAP_MS
  );
}
