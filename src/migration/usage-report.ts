import type { CallCount } from '../ledger/ledger.ts';
import { type ClientRows, clientsIn } from './usage-report-clients.ts';
import { SUCCESSORS, type Successor, isRouteName } from './successors.ts';

/** One v1 route that a client still calls. */
export type ReportedCall = {
  readonly route: string;
  readonly calls: number;
  readonly last_seen: string;
  /** The v2 call in its place, or `null`. */
  readonly v2: string | null;
  readonly fit: Successor['fit'];
  readonly lacks: string | null;
};

/** How ready a client is to use v2. */
type Verdict = 'ready' | 'ready with changes' | 'needs v1';

/** One client: a user with a program. */
export type ReportedClient = {
  readonly user: string;
  readonly agent: string;
  /** The `User-Agent` of its WebSocket library, where it differs. */
  readonly socket_agents: readonly string[];
  readonly client_ids: readonly string[];
  readonly calls: number;
  readonly first_seen: string;
  readonly last_seen: string;
  readonly verdict: Verdict;
  /** Why it is not simply ready. */
  readonly because: readonly string[];
  readonly routes: readonly ReportedCall[];
};

const UNKNOWN_ROUTE: Successor = {
  call: null,
  fit: 'none',
  lacks: 'a route this version does not know',
};

/** The clients that called v1, the one seen last first. */
export function reportOf(rows: readonly CallCount[]): readonly ReportedClient[] {
  return clientsIn(rows)
    .map(clientOf)
    .toSorted((a, b) => b.last_seen.localeCompare(a.last_seen));
}

function clientOf({ user, agent, socketAgents, rows }: ClientRows): ReportedClient {
  const routes = groupBy(rows, ({ route }) => route)
    .map(callOf)
    .toSorted((a, b) => b.calls - a.calls);
  return {
    user,
    agent,
    socket_agents: socketAgents,
    client_ids: [...new Set(rows.map(({ clientId }) => clientId))].filter((id) => id !== ''),
    calls: sum(rows),
    first_seen: isoTime(Math.min(...rows.map(({ firstAtMs }) => firstAtMs))),
    last_seen: lastOf(rows),
    ...verdictOn(routes),
    routes,
  };
}

function callOf(rows: readonly [CallCount, ...CallCount[]]): ReportedCall {
  const [{ route }] = rows;
  const {
    call,
    fit,
    lacks = null,
  } = isRouteName(route) ? (SUCCESSORS[route] as Successor) : UNKNOWN_ROUTE;
  return { route, calls: sum(rows), last_seen: lastOf(rows), v2: call, fit, lacks };
}

function verdictOn(routes: readonly ReportedCall[]): Pick<ReportedClient, 'verdict' | 'because'> {
  const withoutSuccessor = routes.filter(({ fit }) => fit === 'none');
  const withChanges = routes.filter(({ fit }) => fit === 'changes');
  const because = reasonsFor([...withoutSuccessor, ...withChanges]);
  if (withoutSuccessor.length > 0) return { verdict: 'needs v1', because };
  return { verdict: withChanges.length > 0 ? 'ready with changes' : 'ready', because };
}

/** Calls that v2 lacks the same of are named together. */
function reasonsFor(calls: readonly ReportedCall[]): readonly string[] {
  const routes = new Map<string, string[]>();
  for (const { route, lacks } of calls) {
    const text = lacks ?? '';
    routes.set(text, [...(routes.get(text) ?? []), route]);
  }
  return [...routes].map(([text, names]) => `${names.join(', ')}: ${text}`);
}

function groupBy(
  rows: readonly CallCount[],
  keyOf: (row: CallCount) => string,
): (readonly [CallCount, ...CallCount[]])[] {
  const groups = new Map<string, [CallCount, ...CallCount[]]>();
  for (const row of rows) {
    const group = groups.get(keyOf(row));
    if (group) group.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return [...groups.values()];
}

function sum(rows: readonly CallCount[]): number {
  return rows.reduce((total, { count }) => total + count, 0);
}

function lastOf(rows: readonly CallCount[]): string {
  return isoTime(Math.max(...rows.map(({ lastAtMs }) => lastAtMs)));
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}
