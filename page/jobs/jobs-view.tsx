import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import ban from 'icon:ban';
import grid from 'icon:layout-grid';
import inbox from 'icon:inbox';
import loader from 'icon:loader-circle';
import play from 'icon:play';
import rows from 'icon:rows-3';
import search from 'icon:search';
import searchX from 'icon:search-x';
import warning from 'icon:triangle-alert';
import unplug from 'icon:unplug';
import { count, plural } from '../lib/format.ts';
import { goTo, linkTo } from '../lib/route.ts';
import { Choice, Empty, Icon, STATUS_WORDS, type Status } from '../lib/ui.tsx';
import { connection, session } from '../state.ts';
import { JobRow, JobTile, isLive } from './job-row.tsx';
import { canRunSample, runSample } from './sample.ts';
import {
  cancel,
  cancelAll,
  clearFilter,
  clients,
  counts,
  filter,
  hasMore,
  isFiltered,
  jobs,
  loadError,
  loadMore,
  loadState,
  refresh,
  selection,
  setFilter,
} from './store.ts';
import { VirtualList } from './virtual-list.tsx';

const LAYOUT_NAME = 'holdover-layout';
type Layout = 'table' | 'gallery';
const layout = signal<Layout>(
  localStorage.getItem(LAYOUT_NAME) === 'gallery' ? 'gallery' : 'table',
);
const NARROW = matchMedia('(max-width: 46rem)');
const TYPING_MS = 250;

export function JobsView() {
  const scroller = useRef<HTMLDivElement>(null);
  return (
    <div class="view jobs-view">
      <Toolbar />
      <Selection />
      <div class="scroller" ref={scroller} tabIndex={-1}>
        <JobList scroller={scroller} />
      </div>
    </div>
  );
}

function Toolbar() {
  const known = counts.value;
  const all =
    known === undefined ? undefined : Object.values(known).reduce((sum, value) => sum + value, 0);
  const { status, api, clientId } = filter.value;
  const chips = [
    { value: 'all' as const, word: 'All', total: all },
    ...Object.entries(STATUS_WORDS).map(([value, word]) => ({
      value: value as Status,
      word,
      total: known?.[value as Status],
    })),
  ];
  return (
    <header class="toolbar">
      <div class="toolbar-row">
        <h1 tabIndex={-1}>Jobs</h1>
        <SearchField />
        <SampleButton />
        <Choice
          label="Layout"
          value={layout.value}
          onChange={(value) => {
            layout.value = value;
            localStorage.setItem(LAYOUT_NAME, value);
          }}
          options={[
            { value: 'table', text: <Icon shapes={rows} />, title: 'Table' },
            { value: 'gallery', text: <Icon shapes={grid} />, title: 'Gallery' },
          ]}
        />
      </div>
      <div class="toolbar-row is-filters">
        <div class="chips" role="group" aria-label="State">
          {chips.map(({ value, word, total }) => (
            <button
              key={value}
              type="button"
              class="chip"
              aria-pressed={status === value}
              onClick={() => setFilter({ status: value })}
            >
              {word}
              {total !== undefined && <span class="chip-count">{count(total)}</span>}
            </button>
          ))}
        </div>
        <label class="field">
          <span>Client</span>
          <select
            value={clientId}
            onChange={(event) => setFilter({ clientId: event.currentTarget.value })}
          >
            <option value="">all</option>
            {[...clients.value].toSorted().map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>API</span>
          <select
            value={api}
            onChange={(event) => setFilter({ api: event.currentTarget.value as 'all' })}
          >
            <option value="all">all</option>
            <option value="v1">v1</option>
            <option value="v2">v2</option>
          </select>
        </label>
      </div>
    </header>
  );
}

function SearchField() {
  const filtered = filter.value.text;
  const [text, setText] = useState(filtered);
  useEffect(() => setText(filtered), [filtered]);
  useEffect(() => {
    if (text === filter.peek().text) return undefined;
    const timer = setTimeout(() => setFilter({ text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class="search">
      <Icon shapes={search} />
      <span class="hidden">Search jobs</span>
      <input
        type="search"
        placeholder="Name, id, client or error"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </label>
  );
}

function SampleButton({ isLarge = false }: { readonly isLarge?: boolean }) {
  const [isThere, setThere] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const isOpen = connection.value.is === 'open';
  useEffect(() => {
    if (isOpen) void canRunSample().then(setThere);
  }, [isOpen]);
  if (!isThere) return null;
  const onClick = async (): Promise<void> => {
    setBusy(true);
    const id = await runSample();
    setBusy(false);
    if (id !== undefined) goTo(linkTo('jobs', id));
    void refresh();
  };
  return (
    <button
      type="button"
      class={`button ${isLarge ? 'is-primary' : ''}`}
      disabled={isBusy}
      onClick={() => void onClick()}
    >
      <Icon shapes={play} />
      <span>Run a sample</span>
    </button>
  );
}

/** The actions for the chosen jobs. */
function Selection() {
  const chosen = jobs.value.filter(({ key }) => selection.value.has(key));
  const live = chosen.filter(isLive);
  const known = counts.value;
  const liveTotal = known === undefined ? 0 : known.pending + known.in_progress;
  if (chosen.length === 0) {
    if (liveTotal < 2) return null;
    return (
      <div class="selection">
        <span>{plural(liveTotal, 'job')} running or queued</span>
        <CancelAllButton total={liveTotal} />
      </div>
    );
  }
  return (
    <div class="selection">
      <span>{plural(chosen.length, 'job')} selected</span>
      <button
        type="button"
        class="button is-small"
        disabled={live.length === 0}
        onClick={() => void cancel(live.map(({ id }) => id))}
      >
        <Icon shapes={ban} />
        <span>Cancel {live.length}</span>
      </button>
      <button type="button" class="button is-small" onClick={() => (selection.value = new Set())}>
        Clear selection
      </button>
    </div>
  );
}

/** Asks once more before it cancels. */
function CancelAllButton({ total }: { readonly total: number }) {
  const [isAsked, setAsked] = useState(false);
  if (!isAsked) {
    return (
      <button type="button" class="button is-small" onClick={() => setAsked(true)}>
        <Icon shapes={ban} />
        <span>Cancel all</span>
      </button>
    );
  }
  return (
    <>
      <button
        type="button"
        class="button is-small is-danger"
        onClick={() => void cancelAll().then(() => setAsked(false))}
      >
        Cancel {count(total)} jobs
      </button>
      <button type="button" class="button is-small" onClick={() => setAsked(false)}>
        Keep them
      </button>
    </>
  );
}

function JobList({ scroller }: { readonly scroller: { readonly current: HTMLDivElement | null } }) {
  const container = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(1000);
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const onChange = (): void => setNarrow(NARROW.matches);
    NARROW.addEventListener('change', onChange);
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    if (scroller.current) observer.observe(scroller.current);
    return () => {
      NARROW.removeEventListener('change', onChange);
      observer.disconnect();
    };
  }, []);
  const list = jobs.value;
  if (list.length === 0) return <NoJobs />;
  const isGallery = layout.value === 'gallery';
  const columns = Math.max(2, Math.floor(width / 210));
  const keyOf = ({ key }: { readonly key: string }): string => key;
  const end = (
    <p class="list-end">
      {hasMore.value ? 'Loading more …' : `${plural(list.length, 'job')}, that is all.`}
    </p>
  );
  if (isGallery) {
    return (
      <>
        <div class="gallery" ref={container}>
          <VirtualList
            key="gallery"
            items={list}
            columns={columns}
            rowHeight={width / columns + 58}
            scroller={scroller}
            container={container}
            keyOf={keyOf}
            onEnd={() => void loadMore()}
            render={(job) => <JobTile job={job} />}
          />
        </div>
        {end}
      </>
    );
  }
  return (
    <>
      <div
        class="table"
        role="table"
        aria-label="Jobs"
        aria-rowcount={list.length + 1}
        onKeyDown={moveFocus}
      >
        <div class="row head" role="row" aria-rowindex={1}>
          <span class="cell is-check" role="columnheader">
            <SelectAll />
          </span>
          <span class="cell is-picture" role="columnheader">
            <span class="hidden">Picture</span>
          </span>
          <span class="cell is-name" role="columnheader">
            Workflow
          </span>
          <span class="cell is-client" role="columnheader">
            Client
          </span>
          <span class="cell is-state" role="columnheader">
            State
          </span>
          <span class="cell is-time" role="columnheader">
            Submitted
          </span>
          <span class="cell is-number" role="columnheader">
            Waited
          </span>
          <span class="cell is-number" role="columnheader">
            Ran
          </span>
          <span class="cell is-actions" role="columnheader">
            <span class="hidden">Actions</span>
          </span>
        </div>
        <div ref={container} role="rowgroup">
          <VirtualList
            key={`table${isNarrow}`}
            items={list}
            rowHeight={isNarrow ? 96 : 60}
            scroller={scroller}
            container={container}
            keyOf={keyOf}
            onEnd={() => void loadMore()}
            render={(job, index) => <JobRow job={job} index={index} />}
          />
        </div>
      </div>
      {end}
    </>
  );
}

/** Selects all jobs that are in the list. */
function SelectAll() {
  const { size } = selection.value;
  const isAll = size > 0 && size === jobs.value.length;
  const ref = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (ref.current !== null) ref.current.indeterminate = size > 0 && !isAll;
  }, [size, isAll]);
  return (
    <input
      ref={ref}
      type="checkbox"
      checked={isAll}
      aria-label="Select all jobs in the list"
      onChange={() => (selection.value = new Set(isAll ? [] : jobs.peek().map(({ key }) => key)))}
    />
  );
}

/** The arrow keys go from row to row. */
function moveFocus(event: KeyboardEvent): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  const link = (event.target as Element).closest('.job-link');
  if (step === 0 || link === null) return;
  const links = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>('.job-link')];
  const positions = links.map((element) => element.getBoundingClientRect().top);
  const order = links
    .map((_, at) => at)
    .toSorted((a, b) => (positions[a] ?? 0) - (positions[b] ?? 0));
  const next = order[order.indexOf(links.indexOf(link as HTMLElement)) + step];
  if (next === undefined) return;
  event.preventDefault();
  links[next]?.focus();
  links[next]?.scrollIntoView({ block: 'nearest' });
}

function NoJobs() {
  if (connection.value.is === 'lost') {
    return (
      <Empty icon={unplug} title="The server is away">
        <p>Its jobs are shown as soon as it answers again.</p>
      </Empty>
    );
  }
  if (loadState.value === 'failed') {
    return (
      <Empty icon={warning} title="The jobs could not be read">
        <p>{loadError.value}</p>
        <button type="button" class="button" onClick={() => void refresh()}>
          Try again
        </button>
      </Empty>
    );
  }
  if (loadState.value === 'loading') return <Empty icon={loader} title="Reading the jobs …" />;
  if (isFiltered.value) {
    return (
      <Empty icon={searchX} title={hasMore.value ? 'Searching …' : 'No job fits'}>
        <button type="button" class="button" onClick={clearFilter}>
          Show all jobs
        </button>
      </Empty>
    );
  }
  return (
    <Empty icon={inbox} title="No jobs yet">
      <p>
        Holdover keeps clients of ComfyUI's v1 API working: it runs every prompt as a job of the v2
        API. Point a client at <code>{session.value?.address}</code>, or run a sample and watch it
        here.
      </p>
      <p class="buttons">
        <SampleButton isLarge />
        <a class="button" href={linkTo('connect')}>
          Connect a client
        </a>
      </p>
    </Empty>
  );
}
