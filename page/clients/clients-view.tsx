import { signal } from '@preact/signals';
import type { ClientsAnswer, JobListAnswer } from '../../src/console/api-types.ts';
import check from 'icon:circle-check';
import code from 'icon:code-xml';
import { ago, count, dateTime, plural } from '../lib/format.ts';
import { goTo, linkTo } from '../lib/route.ts';
import { NoAnswer, useAnswer } from '../lib/answer.tsx';
import { getJson } from '../lib/server.ts';
import { Button, Empty, type Scope, ScopeChoice } from '../lib/ui.tsx';
import { nameOf } from './agent-name.ts';
import { now, session, tellError } from '../state.ts';

type Client = ClientsAnswer['clients'][number];
type Call = Client['routes'][number];

const FIT_WORDS = {
  same: 'the same in v2',
  changes: 'with changes',
  none: 'not in v2',
} as const satisfies Record<Call['fit'], string>;

const scope = signal<Scope>('own');

/** The clients that still call v1, and how far each is from leaving it. */
export function ClientsView() {
  const whose = scope.value;
  const path = `holdover/api/clients?scope=${whose}`;
  const { answer, fault, read } = useAnswer<ClientsAnswer>(path);
  const clients = answer?.clients ?? [];
  return (
    <div class="view page">
      <div class="title-row">
        <h1 tabIndex={-1}>Leaving v1</h1>
        {session.value?.is_operator === true && (
          <ScopeChoice
            label="Whose clients"
            value={whose}
            onChange={(value) => (scope.value = value)}
          />
        )}
      </div>
      {clients.length > 0 && <Summary clients={clients} />}
      {answer === undefined && <NoAnswer what="report" fault={fault} onRetry={read} />}
      {answer !== undefined && clients.length === 0 && <NoClients />}
      <div class="clients">
        {clients.map((client) => (
          <ClientCard key={`${client.user} ${client.agent}`} client={client} />
        ))}
      </div>
    </div>
  );
}

function Summary({ clients }: { readonly clients: readonly Client[] }) {
  const ready = clients.filter(({ verdict }) => verdict === 'ready').length;
  return (
    <p>
      {plural(clients.length, 'client')} called v1 in the last 90 days;{' '}
      {ready === 0 ? 'none' : count(ready)} of them {ready < 2 ? 'is' : 'are'} ready to leave it.
      Each bar shows how many of the calls v2 has too.
    </p>
  );
}

function NoClients() {
  return (
    <Empty icon={check} title="No client calls v1">
      <p>
        Every program that calls a v1 route appears here, with the v2 call for each of its calls.
      </p>
      <a class="button" href={linkTo('connect')}>
        Connect a client
      </a>
    </Empty>
  );
}

const VERDICT_CLASSES = {
  ready: 'is-completed',
  'ready with changes': 'is-cancelled',
  'needs v1': 'is-failed',
} as const;

function ClientCard({ client }: { readonly client: Client }) {
  const { agent, verdict, routes } = client;
  const id = `client-${client.user}-${agent}`.replaceAll(/\W+/g, '-');
  return (
    <section class="panel client" aria-labelledby={id}>
      <header>
        <h2 id={id} title={agent}>
          <bdi>{nameOf(agent)}</bdi>
        </h2>
        <span class={`badge ${VERDICT_CLASSES[verdict]}`}>{verdict}</span>
      </header>
      <FitBar routes={routes} />
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
      {scope.value === 'own' && routes.some(({ route }) => route === 'POST /prompt') && (
        <CodeButton client={client} />
      )}
    </section>
  );
}

function CodeButton({ client }: { readonly client: Client }) {
  const label = `Write its v2 code, ${client.agent}`;
  return (
    <Button icon={code} label={label} onClick={() => void openCode(client)}>
      Write its v2 code
    </Button>
  );
}

/** Opens the v2 code of the latest prompt of a client. */
async function openCode({ client_ids: ids }: Client): Promise<void> {
  const paths = (ids.length === 0 ? [''] : ids).map(
    (id) =>
      `holdover/api/job-list?${new URLSearchParams({ client_id: id, api: 'v1', limit: '1' })}`,
  );
  try {
    const lists = await Promise.all(paths.map((path) => getJson<JobListAnswer>(path)));
    const [latest] = lists
      .flatMap(({ jobs }) => jobs)
      .toSorted((a, b) => b.created_at_ms - a.created_at_ms);
    if (latest === undefined) throw new Error('The history has no recent prompt of this client.');
    goTo(linkTo('jobs', latest.id, { tab: 'v2 code' }));
  } catch (error) {
    tellError(error);
  }
}

/** The kinds of calls that are ready, as a bar and in words. */
function FitBar({ routes }: { readonly routes: readonly Call[] }) {
  const parts = (['same', 'changes', 'none'] as const)
    .map((fit) => ({ fit, calls: routes.filter((route) => route.fit === fit).length }))
    .filter(({ calls }) => calls > 0);
  return (
    <div class="fit">
      <div class="fit-bar" aria-hidden="true">
        {parts.map(({ fit, calls }) => (
          <span
            key={fit}
            class={`is-${fit}`}
            style={{ width: `${(calls / routes.length) * 100}%` }}
          />
        ))}
      </div>
      <p>
        {parts.map(({ fit, calls }) => (
          <span key={fit} class={`fit-part is-${fit}`}>
            {count(calls)} {FIT_WORDS[fit]}
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
