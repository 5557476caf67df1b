import { isoTime } from '../lib/clock.ts';
import type { CallCount } from '../ledger/ledger.ts';
import { V1_ROUTES, type Successor, isRouteName } from './v1-routes.ts';
import { OTHER_CLIENTS } from './usage-counter.ts';

/** One v1 route that a client still calls. */
export type ReportedCall = {
  readonly route: string;
  readonly calls: number;
  readonly last_seen: string;
  /** The v2 call that replaces it; `null` when there is none. */
  readonly v2: string | null;
  readonly fit: Successor['fit'];
  readonly lacks: string | null;
};

/** How ready a client is to use v2. */
type Verdict = 'ready' | 'ready with changes' | 'needs v1';

type Judged = {
  readonly verdict: Verdict;
  /** The reasons why the verdict is not `ready`. */
  readonly because: readonly string[];
};

/** One client: a user with a program. */
export type ReportedClient = Judged & {
  readonly user: string;
  readonly agent: string;
  /** The `User-Agent` of its WebSocket libraries, if it differs. */
  readonly socket_agents: readonly string[];
  readonly client_ids: readonly string[];
  readonly calls: number;
  readonly first_seen: string;
  readonly last_seen: string;
  readonly routes: readonly ReportedCall[];
};

const UNKNOWN_ROUTE: Successor = {
  call: null,
  fit: 'none',
  lacks: 'a route this version does not know',
};

/** Returns the clients that called v1, the one with the latest call first. */
export function reportOf(rows: readonly CallCount[]): readonly ReportedClient[] {
  return clientsIn(rows)
    .map(clientOf)
    .toSorted((a, b) => b.last_seen.localeCompare(a.last_seen));
}

function clientOf(rows: CallsOfClient): ReportedClient {
  const [{ user, agent }] = rows;
  const socketAgents = new Set(rows.filter(isSocket).map((row) => row.agent));
  socketAgents.delete(agent);
  const routes = groupBy(rows, ({ route }) => route)
    .map(callOf)
    .toSorted((a, b) => b.calls - a.calls);
  return {
    user,
    agent,
    socket_agents: [...socketAgents],
    client_ids: [...new Set(rows.map(({ clientId }) => clientId))].filter((id) => id !== ''),
    calls: sum(rows),
    first_seen: isoTime(Math.min(...rows.map(({ firstAtMs }) => firstAtMs))),
    last_seen: isoTime(lastOf(rows)),
    ...verdictOn(routes),
    routes,
  };
}

function callOf(rows: CallsOfClient): ReportedCall {
  const [{ route }] = rows;
  const {
    call,
    fit,
    lacks = null,
  } = isRouteName(route) ? (V1_ROUTES[route] as Successor) : UNKNOWN_ROUTE;
  return { route, calls: sum(rows), last_seen: isoTime(lastOf(rows)), v2: call, fit, lacks };
}

function verdictOn(routes: readonly ReportedCall[]): Judged {
  const withoutSuccessor = routes.filter(({ fit }) => fit === 'none');
  const withChanges = routes.filter(({ fit }) => fit === 'changes');
  const because = reasonsFor([...withoutSuccessor, ...withChanges]);
  if (withoutSuccessor.length > 0) return { verdict: 'needs v1', because };
  return { verdict: withChanges.length > 0 ? 'ready with changes' : 'ready', because };
}

/** Returns one reason for each feature that v2 lacks, with the calls that need it. */
function reasonsFor(calls: readonly ReportedCall[]): readonly string[] {
  return groupBy(calls, ({ lacks }) => lacks ?? '').map(
    (group) => `${group.map(({ route }) => route).join(', ')}: ${group[0].lacks ?? ''}`,
  );
}

function groupBy<T>(rows: readonly T[], keyOf: (row: T) => string): [T, ...T[]][] {
  const groups = new Map<string, [T, ...T[]]>();
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

function lastOf(rows: readonly CallCount[]): number {
  return Math.max(...rows.map(({ lastAtMs }) => lastAtMs));
}

/** The first call is one of the program itself, not of its WebSocket library. */
type CallsOfClient = readonly [CallCount, ...CallCount[]];

function programKey({ user, agent }: CallCount): string {
  return `${user}\0${agent}`;
}

/**
 * Groups calls by user and `User-Agent`. The WebSocket library of a script often sends another `User-Agent` than its
 * HTTP library. So an agent that only opened sockets belongs to the program of the same user with the same client id,
 * or, if no id matches, to the user's only program.
 */
function clientsIn(rows: readonly CallCount[]): readonly CallsOfClient[] {
  const groups = groupBy(rows, programKey);
  const programs = groups.filter((calls) => !calls.every(isSocket));
  const sockets = groups.filter((calls) => calls.every(isSocket));
  const owners = new Map<CallCount, CallCount>();
  for (const calls of sockets) {
    const ownerOf = ownersIn(
      programs.filter(([{ user }]) => user === calls[0].user),
      calls,
    );
    for (const row of calls) owners.set(row, ownerOf(row) ?? row);
  }
  return groupBy([...programs, ...sockets].flat(), (row) => programKey(owners.get(row) ?? row));
}

function isSocket({ route }: CallCount): boolean {
  return route === 'GET /ws';
}

/** Finds the program that opened a socket, among those of its user. */
function ownersIn(
  programs: readonly CallsOfClient[],
  sockets: readonly CallCount[],
): (row: CallCount) => CallCount | undefined {
  const byId = new Map<string, CallCount>();
  const byLastCall = programs.toSorted((a, b) => lastOf(a) - lastOf(b));
  for (const calls of byLastCall) {
    for (const { clientId } of calls)
      if (clientId !== '' && clientId !== OTHER_CLIENTS) byId.set(clientId, calls[0]);
  }
  const owners = new Set(sockets.flatMap(({ clientId }) => byId.get(clientId) ?? []));
  // Further client ids are counted together (`OTHER_CLIENTS`). They belong to the owner of the known ids if there is
  // only one.
  const [only] = owners.size === 1 ? owners : programs.length === 1 ? programs.flat() : [];
  return ({ clientId }) => byId.get(clientId) ?? only;
}
