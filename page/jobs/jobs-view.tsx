import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import inbox from 'icon:inbox';
import searchX from 'icon:search-x';
import type { JobSummary } from '../../src/console/api-types.ts';
import { NoAnswer } from '../lib/answer.tsx';
import { plural } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { elementByArrow, isNarrow, onResize } from '../lib/screen.ts';
import { Button, Empty } from '../lib/ui.tsx';
import { connection, session } from '../state.ts';
import { JobRow, JobTile } from './job-row.tsx';
import { SelectAll, SelectionBar } from './selection-bar.tsx';
import {
  clearFilter,
  fault,
  hasMore,
  isFiltered,
  isLoaded,
  jobs,
  loadMore,
  refresh,
} from './store.ts';
import { SampleButton, Toolbar, layout } from './toolbar.tsx';
import { type ElementRef, VirtualList } from './virtual-list.tsx';

/** Class and name of each column; a hidden name is only read aloud. */
const COLUMNS: readonly (readonly [kind: string, name: ComponentChildren])[] = [
  ['check', <SelectAll />],
  ['picture', <span class="hidden">Picture</span>],
  ['name', 'Workflow'],
  ['client', 'Client'],
  ['state', 'State'],
  ['time', 'Submitted'],
  ['number', 'Waited'],
  ['number', 'Ran'],
  ['actions', <span class="hidden">Actions</span>],
];

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

function JobList({ scroller }: { readonly scroller: ElementRef }) {
  const [width, setWidth] = useState(1000);
  useEffect(() => onResize(scroller.current, ({ clientWidth }) => setWidth(clientWidth)), []);
  const list = jobs.value;
  if (list.length === 0) return <NoJobs />;
  return (
    <>
      {layout.value === 'gallery' ? (
        <Gallery list={list} scroller={scroller} width={width} />
      ) : (
        <JobTable list={list} scroller={scroller} />
      )}
      <p class="list-end">
        {hasMore.value ? 'Loading more …' : `${plural(list.length, 'job')}, that is all.`}
      </p>
    </>
  );
}

type ListProps = { readonly list: readonly JobSummary[]; readonly scroller: ElementRef };

const keyOf = ({ key }: JobSummary): string => key;
const onEnd = (): void => void loadMore();

function Gallery({ list, scroller, width }: ListProps & { readonly width: number }) {
  const container = useRef<HTMLDivElement>(null);
  const columns = Math.max(2, Math.floor(width / 210));
  return (
    <div class="gallery" ref={container}>
      <VirtualList
        items={list}
        columns={columns}
        rowHeight={width / columns + 58}
        scroller={scroller}
        container={container}
        keyOf={keyOf}
        onEnd={onEnd}
        render={(job) => <JobTile job={job} />}
      />
    </div>
  );
}

function JobTable({ list, scroller }: ListProps) {
  const container = useRef<HTMLDivElement>(null);
  return (
    <div
      class="table"
      role="table"
      aria-label="Jobs"
      aria-rowcount={list.length + 1}
      onKeyDown={(event) => elementByArrow(event, '.job-link')}
    >
      <div class="row head" role="row" aria-rowindex={1}>
        {COLUMNS.map(([kind, name], at) => (
          <span key={at} class={`cell is-${kind}`} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      <div ref={container} role="rowgroup">
        <VirtualList
          key={String(isNarrow.value)}
          items={list}
          rowHeight={isNarrow.value ? 96 : 60}
          scroller={scroller}
          container={container}
          keyOf={keyOf}
          onEnd={onEnd}
          render={(job, index) => <JobRow job={job} index={index} />}
        />
      </div>
    </div>
  );
}

function NoJobs() {
  if (!isLoaded.value || connection.value.is === 'lost')
    return <NoAnswer what="jobs" fault={fault.value} onRetry={() => void refresh()} />;
  if (isFiltered.value) {
    return (
      <Empty icon={searchX} title={hasMore.value ? 'Searching …' : 'No job fits'}>
        <Button onClick={clearFilter}>Show all jobs</Button>
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
