import type { CallCount } from '../ledger/ledger.ts';
import { OTHER_CLIENTS } from './usage-counter.ts';

/** Calls of one client: a user's program, by its `User-Agent`, and the WebSocket library it uses. */
export type ClientRows = {
  readonly user: string;
  readonly agent: string;
  /** `User-Agent` of its sockets, where that is another one. */
  readonly socketAgents: readonly string[];
  readonly rows: readonly [CallCount, ...CallCount[]];
};

type ClientGroup = { readonly user: string; readonly agent: string; readonly rows: CallCount[] };

/**
 * Tells clients apart by user and `User-Agent`. A script's WebSocket library names itself, or says
 * nothing, while its HTTP library says something else: an agent that opened sockets only belongs to
 * the program of the same user that called with the same client id, or, where no id tells, to the
 * user's only program.
 */
export function clientsIn(rows: readonly CallCount[]): readonly ClientRows[] {
  const groups = groupsOf(rows);
  const programs = groups.filter(({ rows: calls }) => !calls.every(isSocket));
  const owned = new Map(programs.map((group) => [group, [...group.rows]]));
  const ownerless: ClientGroup[] = [];
  for (const group of groups.filter((candidate) => !owned.has(candidate))) {
    const ownerOf = ownersIn(
      programs.filter(({ user }) => user === group.user),
      group.rows,
    );
    const unowned = group.rows.filter((row) => {
      const owner = ownerOf(row);
      if (owner) owned.get(owner)?.push(row);
      return !owner;
    });
    ownerless.push({ ...group, rows: unowned });
  }
  const all = [
    ...programs.map((group) => ({ ...group, rows: owned.get(group) ?? [] })),
    ...ownerless,
  ];
  return all.flatMap(clientOf);
}

function isSocket({ route }: CallCount): boolean {
  return route === 'GET /ws';
}

function groupsOf(rows: readonly CallCount[]): readonly ClientGroup[] {
  const groups = new Map<string, ClientGroup>();
  for (const row of rows) {
    const { user, agent } = row;
    const key = `${user}\0${agent}`;
    const group = groups.get(key) ?? { user, agent, rows: [] };
    groups.set(key, group);
    group.rows.push(row);
  }
  return [...groups.values()];
}

/** Finds the program that opened a socket, among those of its user. */
function ownersIn(
  programs: readonly ClientGroup[],
  sockets: readonly CallCount[],
): (row: CallCount) => ClientGroup | undefined {
  const byId = new Map<string, ClientGroup>();
  const byLastCall = programs.toSorted((a, b) => lastCallMsOf(a.rows) - lastCallMsOf(b.rows));
  for (const group of byLastCall) {
    for (const { clientId } of group.rows) if (isDistinct(clientId)) byId.set(clientId, group);
  }
  const owners = new Set(sockets.flatMap(({ clientId }) => byId.get(clientId) ?? []));
  // Ids from the twenty-first on are counted together: they are whose the first twenty were.
  const [only] = owners.size === 1 ? owners : programs.length === 1 ? programs : [];
  return ({ clientId }) => byId.get(clientId) ?? only;
}

function isDistinct(clientId: string): boolean {
  return clientId !== '' && clientId !== OTHER_CLIENTS;
}

function lastCallMsOf(rows: readonly CallCount[]): number {
  return Math.max(...rows.map(({ lastAtMs }) => lastAtMs));
}

function clientOf({ user, agent, rows }: ClientGroup): readonly ClientRows[] {
  const [first, ...rest] = rows;
  if (first === undefined) return [];
  const agents = new Set(rows.filter(isSocket).map((row) => row.agent));
  agents.delete(agent);
  return [{ user, agent, socketAgents: [...agents], rows: [first, ...rest] }];
}
