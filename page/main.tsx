import { effect } from '@preact/signals';
import { type RefObject, render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import activity from 'icon:activity';
import arrows from 'icon:arrow-left-right';
import gauge from 'icon:gauge';
import key from 'icon:key-round';
import list from 'icon:list-video';
import milestone from 'icon:milestone';
import plug from 'icon:plug';
import { ConnectView } from './connect/connect-view.tsx';
import { KeyDialog, LockedView, openKeyDialog } from './key.tsx';
import { JobsView } from './jobs/jobs-view.tsx';
import { liveCount } from './jobs/store.ts';
import { lazy, loadParts } from './lib/lazy.tsx';
import { PARTS, type Part, linkTo, route } from './lib/route.ts';
import { Button, Icon } from './lib/ui.tsx';
import {
  announcement,
  connection,
  hasKey,
  identity,
  now,
  reconnect,
  session,
  start,
  toast,
} from './state.ts';

const JobView = lazy(async () => (await import('./job/job-view.tsx')).JobView);
const InspectorView = lazy(
  async () => (await import('./inspector/inspector-view.tsx')).InspectorView,
);
const ServerView = lazy(async () => (await import('./server/server-view.tsx')).ServerView);
const ClientsView = lazy(async () => (await import('./clients/clients-view.tsx')).ClientsView);

/** The first part is shown by then. */
const LOAD_PARTS_AFTER_MS = 3000;

const NAMES = {
  jobs: ['Jobs', list],
  inspector: ['Inspector', arrows],
  server: ['Server', gauge],
  clients: ['Leaving v1', milestone],
  connect: ['Connect', plug],
} as const satisfies Record<Part, readonly [string, typeof list]>;

function App() {
  const { part, detail } = route.value;
  const main = useRef<HTMLElement>(null);
  const place = `${part} ${detail ?? ''}`;
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else main.current?.querySelector<HTMLElement>('h1')?.focus();
  }, [place]);
  return (
    <>
      <SkipLink main={main} />
      <div class="shell">
        <Navigation part={part} />
        <main id="main" ref={main}>
          <Banner />
          {connection.value.is === 'locked' && part !== 'connect' ? (
            <LockedView />
          ) : (
            <View key={identity.value} part={part} detail={detail} />
          )}
          {toast.value && <div class={`toast is-${toast.value.kind}`}>{toast.value.text}</div>}
        </main>
      </div>
      <p class="hidden" role="status">
        {announcement.value}
      </p>
      <KeyDialog />
    </>
  );
}

function SkipLink({ main }: { readonly main: RefObject<HTMLElement | null> }) {
  return (
    <a
      class="skip"
      href="#main"
      onClick={(event) => {
        event.preventDefault();
        main.current?.querySelector<HTMLElement>('h1, h2')?.focus();
      }}
    >
      Skip to the content
    </a>
  );
}

function View({ part, detail }: { readonly part: Part; readonly detail: string | undefined }) {
  switch (part) {
    case 'jobs':
      return detail === undefined ? <JobsView /> : <JobView key={detail} id={detail} />;
    case 'inspector':
      return <InspectorView />;
    case 'server':
      return <ServerView />;
    case 'clients':
      return <ClientsView />;
    case 'connect':
      return <ConnectView />;
  }
}

function Navigation({ part }: { readonly part: Part }) {
  const live = liveCount.value;
  return (
    <nav class="side" aria-label="Parts of the page">
      <a class="brand" href={linkTo('jobs')} aria-label="Holdover, jobs">
        <svg width="22" height="22" viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="4" class="brand-back" />
          <path d="M5 3v10M11 3v10M5 8h6" class="brand-line" />
        </svg>
        <span>Holdover</span>
      </a>
      <ul>
        {PARTS.map((name) => {
          const [text, icon] = NAMES[name];
          return (
            <li key={name}>
              <a href={linkTo(name)} {...(name === part && { 'aria-current': 'page' as const })}>
                <Icon shapes={icon} size={18} />
                <span>{text}</span>
                {name === 'jobs' && live > 0 && <span class="count">{live}</span>}
              </a>
            </li>
          );
        })}
      </ul>
      <Status />
    </nav>
  );
}

const CONNECTION_WORDS = {
  connecting: 'connecting',
  open: 'connected',
  lost: 'away',
  locked: 'locked',
} as const;

function Status() {
  const { is } = connection.value;
  const known = session.value;
  return (
    <div class="side-status">
      <p>
        <span class={`dot is-${is}`} aria-hidden="true" />
        <span id="link">{CONNECTION_WORDS[is]}</span>
      </p>
      {known && (
        <p class="side-facts">
          <span>{known.upstream}</span>
          <span>version {known.version}</span>
        </p>
      )}
      <Button icon={key} look="is-small" onClick={openKeyDialog}>
        {hasKey.value ? 'Using a key' : 'Use a key'}
      </Button>
    </div>
  );
}

/** Says that the server is away, above what was last known. */
function Banner() {
  const state = connection.value;
  if (state.is !== 'lost') return null;
  const seconds = Math.max(0, Math.ceil((state.retryAtMs - now.value) / 1000));
  return (
    <div class="banner" role="alert">
      <Icon shapes={activity} />
      <span>The server is away. What is shown was true before. Next try in {seconds} s.</span>
      <Button look="is-small" onClick={reconnect}>
        Try now
      </Button>
    </div>
  );
}

effect(() => {
  const live = liveCount.value;
  const [name] = NAMES[route.value.part];
  document.title = `${live > 0 ? `(${live}) ` : ''}${name} · Holdover`;
});
start();
setTimeout(loadParts, LOAD_PARTS_AFTER_MS);
const root = document.querySelector('#app');
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
