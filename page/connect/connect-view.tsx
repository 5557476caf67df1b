import { useEffect, useRef } from 'preact/hooks';
import type { ClientsAnswer, TrafficAnswer } from '../../src/console/api-types.ts';
import radio from 'icon:radio';
import { nameOf } from '../clients/agent-name.ts';
import { useCanRunSample } from '../jobs/sample.ts';
import { openKeyDialog } from '../key.tsx';
import { useAnswer } from '../lib/answer.tsx';
import { ago } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { getJson } from '../lib/server.ts';
import { Button, CodeText, CopyButton, Fact, Icon } from '../lib/ui.tsx';
import { announcement, connection, hasKey, now, session } from '../state.ts';

/** Shows the addresses that clients are given, a call to try, and the clients that have called. */
export function ConnectView() {
  const base = session.value?.address ?? '';
  const token = session.value?.needs_token === true;
  return (
    <div class="view page connect">
      <h1 tabIndex={-1}>Connect a client</h1>
      <p>
        Give an existing client this address and change nothing else. It gets the messages, files
        and errors it knows.
      </p>
      <LastClient />
      <Addresses base={base} token={token} />
      <h2>Try it</h2>
      <TryIt base={base} token={token} />
      <h2>Keys</h2>
      <p>
        {token
          ? 'This server asks for its token: in X-API-Key, Authorization: Bearer, or ?token= of the socket.'
          : 'Each key (X-API-Key, Bearer, Basic, or ?token=) is a user with a queue, history and files of its own. Callers without a key share one user.'}
      </p>
      <Button onClick={openKeyDialog}>
        {hasKey.value ? 'Change the key of this page' : 'Use a key in this page'}
      </Button>
    </div>
  );
}

type AddressProps = { readonly base: string; readonly token: boolean };

function Addresses({ base, token }: AddressProps) {
  const socket = base.replace(/^http/, 'ws');
  const lines = [
    { name: 'Scripts with a server_address', text: base.replace(/^https?:\/\//, '') },
    { name: 'SDKs with a base URL', text: base },
    { name: 'Clients of the hosted service', text: `${base}/api` },
    {
      name: 'WebSocket',
      text: `${socket}/ws?clientId=YOUR_CLIENT_ID${token ? '&token=YOUR_TOKEN' : ''}`,
    },
    { name: 'v2 API', text: `${base}/api/v2` },
  ];
  return (
    <dl class="lines">
      {lines.map(({ name, text }) => (
        <Fact key={name} name={name}>
          <code>{text}</code>
          <CopyButton text={text} label={`Copy ${text}`} />
        </Fact>
      ))}
    </dl>
  );
}

const GRAPH = `{
    "1": {"class_type": "EmptyImage",
          "inputs": {"width": 256, "height": 256, "batch_size": 1, "color": 4620980}},
    "2": {"class_type": "SaveImage",
          "inputs": {"images": ["1", 0], "filename_prefix": "first"}}
  }`;

/** A v1 call that works as it stands: a prompt where the upstream runs the sample, else a question. */
function TryIt({ base, token }: AddressProps) {
  const canRun = useCanRunSample();
  const header = token ? " \\\n  -H 'X-API-Key: YOUR_TOKEN'" : '';
  const text = canRun
    ? `curl ${base}/prompt${header} \\
  -H 'Content-Type: application/json' \\
  -d '{"client_id": "first-client", "prompt": ${GRAPH}}'`
    : `curl ${base}/system_stats${header}`;
  return (
    <>
      <p>
        {canRun
          ? 'This is a v1 call as old scripts make it. Its job appears under Jobs.'
          : 'This is a v1 call as old scripts make it.'}
      </p>
      <CodeText text={text} label="Copy the command" />
    </>
  );
}

/** Recording ends 90 seconds after it was last asked for. */
const RECORD_EVERY_MS = 45_000;

/** Records traffic while the page is open, so that the inspector has the first call of a client. */
function useRecording(): void {
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (!isOpen) return undefined;
    let after = '';
    const record = (): void => {
      const query = after === '' ? '' : `?${new URLSearchParams({ after })}`;
      getJson<TrafficAnswer>(`holdover/api/traffic${query}`).then(
        ({ server, revision }) => (after = `${server}.${revision}`),
        () => {},
      );
    };
    record();
    const timer = setInterval(() => !document.hidden && record(), RECORD_EVERY_MS);
    return () => clearInterval(timer);
  }, [isOpen]);
}

const POLL_MS = 3000;

/** The client that called last, `null`: none has. The first one is read aloud. */
function useLastClient() {
  const { answer } = useAnswer<ClientsAnswer>('holdover/api/clients?scope=own', POLL_MS);
  const last = answer && (answer.clients[0] ?? null);
  const wasNone = useRef(false);
  useEffect(() => {
    if (last && wasNone.current) announcement.value = `${nameOf(last.agent)} has called.`;
    wasNone.current = last === null;
  }, [last]);
  return last;
}

/** The client that called last, with the ways to see its calls; read anew while the page is open. */
function LastClient() {
  useRecording();
  const last = useLastClient();
  if (last === undefined) return null;
  if (last === null) {
    return (
      <p class="panel last-client">
        <Icon shapes={radio} />
        <span>No client has called yet. The first call is shown here at once.</span>
      </p>
    );
  }
  return (
    <p class="panel last-client">
      <Icon shapes={radio} />
      <span>
        <strong>
          <bdi>{nameOf(last.agent)}</bdi>
        </strong>{' '}
        called {ago(Date.parse(last.last_seen), now.value)}.
      </span>
      <span class="buttons">
        <a class="button is-small" href={linkTo('jobs')}>
          Its jobs
        </a>
        <a class="button is-small" href={linkTo('inspector')}>
          Inspect its calls
        </a>
        <a class="button is-small" href={linkTo('clients')}>
          Its v2 code
        </a>
      </span>
    </p>
  );
}
