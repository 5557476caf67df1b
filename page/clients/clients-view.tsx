import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ClientsAnswer, CodeAnswer } from '../../src/console/api-types.ts';
import check from 'icon:circle-check';
import code from 'icon:code-xml';
import loader from 'icon:loader-circle';
import warning from 'icon:triangle-alert';
import { ago, count, dateTime, plural } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { getJson } from '../lib/server.ts';
import { Choice, CopyButton, Empty, Icon } from '../lib/ui.tsx';
import { connection, now, session } from '../state.ts';

type Client = ClientsAnswer['clients'][number];
type Call = Client['routes'][number];

const FIT_WORDS = {
  same: 'the same in v2',
  changes: 'with changes',
  none: 'not in v2',
} as const satisfies Record<Call['fit'], string>;

const scope = signal<'own' | 'all'>('own');

/** Who still calls v1, and how far each client is from leaving it. */
export function ClientsView() {
  const [answer, setAnswer] = useState<ClientsAnswer>();
  const [fault, setFault] = useState('');
  const isOpen = connection.value.is === 'open';
  const whose = scope.value;
  useEffect(() => {
    if (!isOpen) return;
    getJson<ClientsAnswer>(`holdover/api/clients?scope=${whose}`).then(
      setAnswer,
      (error: unknown) => setFault(String(error)),
    );
  }, [isOpen, whose]);
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
          {plural(clients.length, 'client')} called v1 in the last 90 days,{' '}
          {ready === 0 ? 'none' : count(ready)} of them {ready === 1 ? 'is' : 'are'} ready to leave
          it. Each bar shows the calls that v2 has the same of, has with changes, and lacks.
        </p>
      )}
      {answer === undefined &&
        (fault === '' ? (
          <Empty icon={loader} title="Reading the report …" />
        ) : (
          <Empty icon={warning} title="The report could not be read">
            <p>{fault}</p>
          </Empty>
        ))}
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

const VERDICT_CLASSES = {
  ready: 'is-completed',
  'ready with changes': 'is-cancelled',
  'needs v1': 'is-failed',
} as const;

function ClientCard({ client, isOwn }: { readonly client: Client; readonly isOwn: boolean }) {
  const { agent, verdict, routes, because } = client;
  const share = (fit: Call['fit']): number => {
    const calls = routes.filter((route) => route.fit === fit).length;
    return routes.length === 0 ? 0 : (calls / routes.length) * 100;
  };
  const submits = routes.some(({ route }) => route === 'POST /prompt');
  const id = `client-${client.user}-${agent}`.replaceAll(/\W+/g, '-');
  return (
    <section class="panel client" aria-labelledby={id}>
      <header>
        <h2 id={id}>
          <bdi>{agent}</bdi>
        </h2>
        <span class={`badge ${VERDICT_CLASSES[verdict]}`}>{verdict}</span>
      </header>
      <div
        class="fit-bar"
        role="img"
        aria-label={`${Math.round(share('same'))} % of its calls are the same in v2, ${Math.round(share('changes'))} % need changes, ${Math.round(share('none'))} % are not in v2`}
      >
        <span class="is-same" style={{ width: `${share('same')}%` }} />
        <span class="is-changes" style={{ width: `${share('changes')}%` }} />
        <span class="is-none" style={{ width: `${share('none')}%` }} />
      </div>
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
      {because.length > 0 && verdict !== 'ready' && (
        <p class="muted">A call in colour needs a change; open it to see which.</p>
      )}
      {submits && isOwn && <ClientCode client={client} />}
    </section>
  );
}

function CallItem({ call }: { readonly call: Call }) {
  const { route, calls, v2, fit, lacks } = call;
  return (
    <li class={`call is-${fit}`}>
      <details>
        <summary>
          <code>{route}</code>
          <span class="call-v2">{v2 === null ? FIT_WORDS.none : <code>{v2}</code>}</span>
          <small>{count(calls)} ×</small>
        </summary>
        <p>
          {FIT_WORDS[fit]}
          {lacks !== null && `. v2 lacks: ${lacks}`}
        </p>
      </details>
    </li>
  );
}

const LANGUAGES = [
  { value: 'python', text: 'Python' },
  { value: 'typescript', text: 'TypeScript' },
  { value: 'curl', text: 'curl' },
] as const;

/** Writes the latest workflows of the client as a program that uses v2. */
function ClientCode({ client }: { readonly client: Client }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [language, setLanguage] = useState<CodeAnswer['language']>('python');
  const [answer, setAnswer] = useState<CodeAnswer>();
  const [fault, setFault] = useState('');
  const [isAsked, setAsked] = useState(false);
  useEffect(() => {
    if (!isAsked) return;
    setAnswer(undefined);
    setFault('');
    const query = new URLSearchParams({ language });
    for (const id of client.client_ids.length === 0 ? [''] : client.client_ids)
      query.append('client_id', id);
    getJson<CodeAnswer>(`holdover/api/clients/code?${query}`).then(setAnswer, (error: unknown) =>
      setFault(error instanceof Error ? error.message : String(error)),
    );
  }, [isAsked, language]);
  return (
    <>
      <button
        type="button"
        class="button"
        onClick={() => {
          setAsked(true);
          dialog.current?.showModal();
        }}
      >
        <Icon shapes={code} />
        <span>Write its v2 code</span>
      </button>
      <dialog ref={dialog} class="is-wide" aria-label={`v2 code of ${client.agent}`}>
        <h2>
          v2 code of <bdi>{client.agent}</bdi>
        </h2>
        <p class="muted">
          Its latest workflows, each once: uploads, submissions and downloads as v2 calls.
        </p>
        <Choice label="Language" value={language} onChange={setLanguage} options={LANGUAGES} />
        {fault !== '' && <p class="fault">{fault}</p>}
        {answer === undefined ? (
          fault === '' && <p class="muted">Writing …</p>
        ) : (
          <div class="code">
            <pre tabIndex={0}>{answer.code}</pre>
            <CopyButton text={answer.code} label="Copy the code" />
          </div>
        )}
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </dialog>
    </>
  );
}
