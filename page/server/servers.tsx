import type { OtherServer } from '../../src/console/api-types.ts';
import { count, dateTime, duration, plural, size } from '../lib/format.ts';
import { Table } from '../lib/ui.tsx';
import { now } from '../state.ts';

/** The name of a server's machine, and of its process where there may be several on one. */
export function nameOfServer({ server, host }: OtherServer, own: string): string {
  return `${host} · ${server.slice(0, 4)}${server === own ? ', which answered this page' : ''}`;
}

const COLUMNS = ['Server', 'Version', 'Up since', 'Sockets', 'Calls a second', 'p95', 'Memory'];

/** All servers over one ledger, with their latest figures; the plots are of the one that is chosen. */
export function Servers({
  servers,
  count: total,
  own,
  shown,
  onChoose,
}: {
  readonly servers: readonly OtherServer[];
  /** Servers that there are; of one that has just started nothing is known yet. */
  readonly count: number;
  readonly own: string;
  readonly shown: string;
  readonly onChoose: (server: string) => void;
}) {
  const missing = total - servers.length;
  return (
    <>
      <h2>
        Servers <small>{count(total)}</small>
      </h2>
      <Table label="Servers" columns={COLUMNS}>
        {servers.map((server) => (
          <ServerRow
            key={server.server}
            server={server}
            name={nameOfServer(server, own)}
            isShown={server.server === shown}
            onChoose={() => onChoose(server.server)}
          />
        ))}
      </Table>
      {missing > 0 && (
        <p class="muted">
          {plural(missing, 'server')} more: figures come within twenty seconds of a start.
        </p>
      )}
    </>
  );
}

function ServerRow({
  server,
  name,
  isShown,
  onChoose,
}: {
  readonly server: OtherServer;
  readonly name: string;
  readonly isShown: boolean;
  readonly onChoose: () => void;
}) {
  const last = server.samples.at(-1);
  const { requests_per_second: rate = null, latency_p95_ms: p95 = null } = last ?? {};
  return (
    <tr>
      <th scope="row">
        <button type="button" class="chip" aria-pressed={isShown} onClick={onChoose}>
          {name}
        </button>
      </th>
      <td>{server.version}</td>
      <td title={dateTime(server.started_at_ms)}>{duration(now.value - server.started_at_ms)}</td>
      <td>{last === undefined ? '–' : count(last.sockets)}</td>
      <td>{rate === null ? '–' : rate.toFixed(1)}</td>
      <td>{p95 === null ? '–' : duration(p95)}</td>
      <td>{last === undefined ? '–' : size(last.memory_bytes)}</td>
    </tr>
  );
}
