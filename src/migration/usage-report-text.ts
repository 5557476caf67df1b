import type { ReportedCall, ReportedClient } from './usage-report.ts';

const NO_CLIENTS = 'No client has called v1 so far.\n';
const IDS_SHOWN = 3;

/** Returns the report as text for a terminal. */
export function reportText(clients: readonly ReportedClient[]): string {
  return clients.length === 0 ? NO_CLIENTS : clients.map(clientText).join('\n');
}

function clientText(client: ReportedClient): string {
  const { user, client_ids: ids, calls, first_seen: first, last_seen: last } = client;
  const named = ids.length === 0 ? '' : `, client id ${idsText(ids)}`;
  return [
    titleOf(client),
    `  user ${user}${named}`,
    `  ${countText(calls)} from ${first} to ${last}`,
    `  ${client.verdict}`,
    ...client.because.map((reason) => `    - ${reason}`),
    ...notesOn(client.routes).map((note) => `    ${note}`),
    ...table(client.routes).map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/** Returns the name of the program, with the `User-Agent` of its sockets if it differs. */
function titleOf({ agent, socket_agents: socketAgents }: ReportedClient): string {
  return socketAgents.length === 0 ? agent : `${agent}, sockets by ${socketAgents.join(', ')}`;
}

/** Returns a note for each route whose v2 call does the same with an exception. */
function notesOn(routes: readonly ReportedCall[]): string[] {
  return routes.flatMap(({ route, fit, lacks }) =>
    fit === 'same' && lacks !== null ? [`${route}, unless it needs ${lacks}`] : [],
  );
}

function idsText(ids: readonly string[]): string {
  const more = ids.length - IDS_SHOWN;
  return ids.slice(0, IDS_SHOWN).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function countText(calls: number): string {
  return calls === 1 ? '1 call' : `${calls} calls`;
}

function table(routes: readonly ReportedCall[]): string[] {
  const width = Math.max(...routes.map(({ route }) => route.length));
  const line = (route: string, times: string, last: string, v2: string): string =>
    `${route.padEnd(width)}  ${times.padStart(8)}  ${last.padEnd(19)}  ${v2}`;
  return [
    line('v1 call', 'times', 'last seen', 'v2 call'),
    ...routes.map(({ route, calls, last_seen: last, v2 }) =>
      line(route, String(calls), last.slice(0, 19).replace('T', ' '), v2 ?? '–'),
    ),
  ];
}
