import { useEffect, useRef, useState } from 'preact/hooks';
import inbox from 'icon:inbox';
import loader from 'icon:loader-circle';
import searchX from 'icon:search-x';
import warning from 'icon:triangle-alert';
import unplug from 'icon:unplug';
import { plural } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { Empty } from '../lib/ui.tsx';
import { connection, session } from '../state.ts';
import { JobRow, JobTile } from './job-row.tsx';
import { SelectAll, SelectionBar } from './selection-bar.tsx';
import {
  clearFilter,
  hasMore,
  isFiltered,
  jobs,
  loadError,
  loadMore,
  loadState,
  refresh,
} from './store.ts';
import { SampleButton, Toolbar, layout } from './toolbar.tsx';
import { VirtualList } from './virtual-list.tsx';

const NARROW = matchMedia('(max-width: 46rem)');

export function JobsView() {
  const scroller = useRef<HTMLDivElement>(null);
  return (
    <div class="view jobs-view">
      <Toolbar />
      <SelectionBar />
      <div class="scroller" ref={scroller} tabIndex={-1}>
        <JobList scroller={scroller} />
      </div>
    </div>
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
