import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ClientsAnswer } from '../../src/console/api-types.ts';
import check from 'icon:circle-check';
import code from 'icon:code-xml';
import loader from 'icon:loader-circle';
import warning from 'icon:triangle-alert';
import unplug from 'icon:unplug';
import { ago, count, dateTime, plural } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { getJson } from '../lib/server.ts';
import { CodeBlock } from '../lib/code.tsx';
import { Choice, Empty, Icon } from '../lib/ui.tsx';
import { nameOf } from './agent-name.ts';
import { connection, now, session } from '../state.ts';

type Client = ClientsAnswer['clients'][number];
type Call = Client['routes'][number];

const FIT_WORDS = {
  same: 'the same in v2',
  changes: 'with changes',
  none: 'not in v2',
} as const satisfies Record<Call['fit'], string>;

const scope = signal<'own' | 'all'>('own');

/** The clients that still call v1, and how far each is from leaving it. */
export function ClientsView() {
  const [answer, setAnswer] = useState<ClientsAnswer>();
  const [fault, setFault] = useState('');
  const [attempt, setAttempt] = useState(0);
  const isOpen = connection.value.is === 'open';
  const whose = scope.value;
  useEffect(() => {
    if (!isOpen) return undefined;
    let isCurrent = true;
    setFault('');
    getJson<ClientsAnswer>(`holdover/api/clients?scope=${whose}`).then(
      (found) => isCurrent && setAnswer(found),
      (error: unknown) =>
        isCurrent && setFault(error instanceof Error ? error.message : String(error)),
    );
    return () => void (isCurrent = false);
  }, [isOpen, whose, attempt]);
  const clients = answer?.clients ?? [];
  const ready = clients.filter(({ verdict }) => verdict === 'ready').length;
  return (
    <div class="view page">
      <div class="title-row">
        <h1 tabIndex={-1}>Leaving v1</h1>
        {session.value?.is_operator === true && (
          <Choice
            label="Whose clients"
            value={whose}
            onChange={(value) => (scope.value = value)}
            options={[
              { value: 'own', text: 'Mine' },
              { value: 'all', text: 'All users' },
            ]}
          />
        )}
      </div>
      {answer !== undefined && clients.length > 0 && (
        <p>
          {plural(clients.length, 'client')} called v1 in the last 90 days;{' '}
          {ready === 0 ? 'none' : count(ready)} of them {ready < 2 ? 'is' : 'are'} ready to leave
          it. Each bar shows how many of the calls v2 has too.
        </p>
      )}
      {answer === undefined && (
        <NoReport fault={fault} onRetry={() => setAttempt((known) => known + 1)} />
      )}
      {answer !== undefined && clients.length === 0 && (
        <Empty icon={check} title="No client calls v1">
          <p>
            Every program that calls a v1 route appears here, with the v2 call for each of its
            calls.
          </p>
          <a class="button" href={linkTo('connect')}>
            Connect a client
          </a>
        </Empty>
      )}
      <div class="clients">
        {clients.map((client) => (
          <ClientCard
            key={`${client.user} ${client.agent}`}
            client={client}
            isOwn={whose === 'own'}
          />
        ))}
      </div>
    </div>
  );
}

/** Shown in place of the report: it is being read, or could not be read. */
function NoReport({ fault, onRetry }: { readonly fault: string; readonly onRetry: () => void }) {
  if (connection.value.is === 'lost')
    return (
      <Empty icon={unplug} title="The server is away">
        <p>The report is shown as soon as it answers again.</p>
      </Empty>
    );
  if (fault === '') return <Empty icon={loader} title="Reading the report …" />;
  return (
    <Empty icon={warning} title="The report could not be read">
      <p>{fault}</p>
      <button type="button" class="button" onClick={onRetry}>
        Try again
      </button>
    </Empty>
  );
}

const VERDICT_CLASSES = {
  ready: 'is-completed',
  'ready with changes': 'is-cancelled',
  'needs v1': 'is-failed',
} as const;

function ClientCard({ client, isOwn }: { readonly client: Client; readonly isOwn: boolean }) {
  const { agent, verdict, routes } = client;
  const calls = (fit: Call['fit']): number => routes.filter((route) => route.fit === fit).length;
  const submits = routes.some(({ route }) => route === 'POST /prompt');
  const id = `client-${client.user}-${agent}`.replaceAll(/\W+/g, '-');
  return (
    <section class="panel client" aria-labelledby={id}>
      <header>
        <h2 id={id} title={agent}>
          <bdi>{nameOf(agent)}</bdi>
        </h2>
        <span class={`badge ${VERDICT_CLASSES[verdict]}`}>{verdict}</span>
      </header>
      <FitBar same={calls('same')} changes={calls('changes')} none={calls('none')} />
      <p class="muted">
        {plural(client.calls, 'call')} · last{' '}
        <time dateTime={client.last_seen} title={dateTime(Date.parse(client.last_seen))}>
          {ago(Date.parse(client.last_seen), now.value)}
        </time>
        {client.client_ids.length > 0 && (
          <>
            {' '}
            · client id <bdi>{client.client_ids.slice(0, 3).join(', ')}</bdi>
            {client.client_ids.length > 3 && ` and ${client.client_ids.length - 3} more`}
          </>
        )}
      </p>
      <ul class="calls">
        {routes.map((route) => (
          <CallItem key={route.route} call={route} />
        ))}
      </ul>
      {submits && isOwn && <ClientCode client={client} />}
    </section>
  );
}

/** The kinds of calls that are ready, as a bar and in words. */
function FitBar({
  same,
  changes,
  none,
}: {
  readonly same: number;
  readonly changes: number;
  readonly none: number;
}) {
  const all = Math.max(1, same + changes + none);
  const parts = [
    { name: 'same', text: 'the same in v2', calls: same },
    { name: 'changes', text: 'with changes', calls: changes },
    { name: 'none', text: 'not in v2', calls: none },
  ].filter(({ calls }) => calls > 0);
  return (
    <div class="fit">
      <div class="fit-bar" aria-hidden="true">
        {parts.map(({ name, calls }) => (
          <span key={name} class={`is-${name}`} style={{ width: `${(calls / all) * 100}%` }} />
        ))}
      </div>
      <p>
        {parts.map(({ name, text, calls }) => (
          <span key={name} class={`fit-part is-${name}`}>
            {count(calls)} {text}
          </span>
        ))}
      </p>
    </div>
  );
}

function CallItem({ call }: { readonly call: Call }) {
  const { route, calls, v2, fit, lacks, last_seen: lastSeen } = call;
  return (
    <li class={`call is-${fit}`}>
      <details>
        <summary>
          <code>{route}</code>
          <span class="call-v2">{v2 === null ? FIT_WORDS.none : <code>{v2}</code>}</span>
          <small>{count(calls)} ×</small>
        </summary>
        <p>
          {FIT_WORDS[fit][0]?.toUpperCase() + FIT_WORDS[fit].slice(1)}
          {lacks !== null && `. v2 lacks: ${lacks}`}. Last call{' '}
          <time dateTime={lastSeen} title={dateTime(Date.parse(lastSeen))}>
            {ago(Date.parse(lastSeen), now.value)}
          </time>
          .
        </p>
      </details>
    </li>
  );
}

/** Writes the latest workflows of the client as a program that uses v2. */
function ClientCode({ client }: { readonly client: Client }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const pathFor = (language: string): string => {
    const ids = client.client_ids.length === 0 ? [''] : client.client_ids;
    const query = [['language', language], ...ids.map((id) => ['client_id', id])];
    return `holdover/api/clients/code?${new URLSearchParams(query)}`;
  };
  return (
    <>
      <button
        type="button"
        class="button"
        onClick={() => {
          setOpen(true);
          dialog.current?.showModal();
        }}
      >
        <Icon shapes={code} />
        <span>Write its v2 code</span>
      </button>
      <dialog
        ref={dialog}
        class="is-wide"
        aria-label={`v2 code of ${client.agent}`}
        onClose={() => setOpen(false)}
      >
        <h2>
          v2 code of <bdi>{nameOf(client.agent)}</bdi>
        </h2>
        <p class="muted">
          Its latest workflows, each once: uploads, submissions and downloads as v2 calls.
        </p>
        {isOpen && <CodeBlock pathFor={pathFor} />}
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}
