import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { JobSummary } from '../../src/console/api-types.ts';
import ban from 'icon:ban';
import dices from 'icon:dices';
import play from 'icon:play';
import { VideoPicture, mediaKind } from '../lib/media.tsx';
import { ShownThumbnail } from '../lib/pictures.tsx';
import { ago, dateTime, duration } from '../lib/format.ts';
import { linkTo } from '../lib/route.ts';
import { useIsWhole } from '../lib/scrolling.ts';
import { Button, StatusBadge } from '../lib/ui.tsx';
import { now } from '../state.ts';
import { fractionOf, liveJob } from './live.ts';
import { runAgain } from './run.ts';
import { cancel, refresh, selection, toggleSelected } from './store.ts';

type JobProps = { readonly job: JobSummary };

export function isLive({ status }: Pick<JobSummary, 'status'>): boolean {
  return status === 'pending' || status === 'in_progress';
}

/** The time a job waited and the time it ran; of a live job, so far. */
export function times(job: JobSummary, nowMs: number) {
  const { created_at_ms: created, started_at_ms: started, ended_at_ms: ended } = job;
  const end = ended ?? nowMs;
  return {
    waitedMs: started === null ? end - created : started - created,
    ranMs: started === null ? null : end - started,
  };
}

function JobPicture({ job }: JobProps) {
  const { preview } = isLive(job) ? liveJob(job.id).value : {};
  if (preview !== undefined) {
    return (
      <span class="thumbnail">
        <img src={preview} alt={`Preview of ${job.name}`} decoding="async" />
      </span>
    );
  }
  if (job.preview !== null) {
    return mediaKind(job.preview) === undefined ? (
      <ShownThumbnail of={job.preview} />
    ) : (
      <VideoPicture of={job.preview} />
    );
  }
  return <span class="thumbnail" aria-hidden="true" />;
}

/** A bar with the node at work and the time that is left. */
export function Progress({ job }: JobProps) {
  const live = liveJob(job.id).value;
  const fraction = fractionOf(live, job.node_count);
  const ranMs = job.started_at_ms === null ? 0 : now.value - job.started_at_ms;
  const left =
    fraction !== undefined && fraction > 0.03 ? (ranMs / fraction) * (1 - fraction) : undefined;
  const step = live.max !== undefined && live.max > 1 ? `${live.value ?? 0}/${live.max}` : '';
  const words = [
    live.node === undefined ? '' : `node ${live.node}`,
    step,
    left === undefined ? '' : `${duration(left)} left`,
  ];
  return (
    <span class="progress">
      <progress
        max={1}
        {...(fraction !== undefined && { value: fraction })}
        aria-label={`Progress of ${job.name}`}
      />
      <small>{words.filter((word) => word !== '').join(' · ')}</small>
    </span>
  );
}

function JobState({ job }: JobProps) {
  if (job.status === 'in_progress') {
    return (
      <span class="state">
        <StatusBadge status={job.status} />
        <Progress job={job} />
      </span>
    );
  }
  const note =
    job.position !== null
      ? job.position === 1
        ? 'next'
        : `number ${job.position}`
      : (job.error ?? '');
  return (
    <span class="state">
      <StatusBadge status={job.status} />
      {note !== '' && <small title={note}>{note}</small>}
    </span>
  );
}

function JobActions({ job }: JobProps) {
  if (isLive(job)) {
    return (
      <Button
        icon={ban}
        look="is-icon"
        title="Cancel"
        label={`Cancel ${job.name}, ${job.id}`}
        onClick={() => void cancel([job.id])}
      />
    );
  }
  const again = async (seed: 'same' | 'new'): Promise<void> => {
    await runAgain(job.id, { seed });
    void refresh();
  };
  return (
    <>
      <Button
        icon={play}
        look="is-icon"
        title="Run again"
        label={`Run ${job.name} again`}
        onClick={() => void again('same')}
      />
      <Button
        icon={dices}
        look="is-icon"
        title="Run again with a new seed"
        label={`Run ${job.name} again with a new seed`}
        onClick={() => void again('new')}
      />
    </>
  );
}

/** Its text alone changes with the time, and nothing around it. */
function Ago({ atMs }: { readonly atMs: number }) {
  const text = useMemo(() => computed(() => ago(atMs, now.value)), [atMs]);
  return <>{text}</>;
}

export function JobRow({ job, index }: JobProps & { readonly index: number }) {
  const isSelected = selection.value.has(job.key);
  const isWhole = useIsWhole();
  return (
    <div
      class={`row job-row ${isSelected ? 'is-selected' : ''}`}
      role="row"
      aria-rowindex={index + 2}
    >
      <span class="cell is-check" role="cell">
        {isWhole && (
          <input
            type="checkbox"
            checked={isSelected}
            aria-label={`Select ${job.name}, ${job.id}`}
            onChange={() => toggleSelected(job.key)}
          />
        )}
      </span>
      <span class="cell is-picture" role="cell">
        {isWhole ? <JobPicture job={job} /> : <span class="thumbnail" />}
      </span>
      <NameCells job={job} />
      <span class="cell is-state" role="cell">
        <JobState job={job} />
      </span>
      <TimeCells job={job} />
      <span class="cell is-actions" role="cell">
        {isWhole && <JobActions job={job} />}
      </span>
    </div>
  );
}

function NameCells({ job }: JobProps) {
  return (
    <>
      <span class="cell is-name" role="cell">
        <a href={linkTo('jobs', job.id)} class="job-link">
          <bdi>{job.name}</bdi>
        </a>
        <small class="mono" title={job.id}>
          <bdi>{job.id}</bdi>
        </small>
      </span>
      <span class="cell is-client" role="cell" title={job.client_id ?? 'no client id'}>
        <bdi>{job.client_id ?? '–'}</bdi>
        <span class="tag">{job.api}</span>
      </span>
    </>
  );
}

function TimeCells({ job }: JobProps) {
  const { waitedMs, ranMs } = times(job, isLive(job) ? now.value : 0);
  return (
    <>
      <span class="cell is-time" role="cell" title={dateTime(job.created_at_ms)}>
        <Ago atMs={job.created_at_ms} />
      </span>
      <span class="cell is-number" role="cell" data-label="waited">
        {duration(waitedMs)}
      </span>
      <span class="cell is-number" role="cell" data-label="ran">
        {ranMs === null ? '–' : duration(ranMs)}
      </span>
    </>
  );
}

export function JobTile({ job }: JobProps) {
  const { ranMs } = times(job, isLive(job) ? now.value : 0);
  const isWhole = useIsWhole();
  return (
    <article class="tile">
      <a href={linkTo('jobs', job.id)} class="tile-picture" aria-label={job.name}>
        {isWhole ? <JobPicture job={job} /> : <span class="thumbnail" />}
        {job.outputs_count > 1 && <span class="tile-count">{job.outputs_count}</span>}
      </a>
      <div class="tile-text">
        <a href={linkTo('jobs', job.id)} class="tile-name" tabIndex={-1}>
          <bdi>{job.name}</bdi>
        </a>
        {job.status === 'in_progress' ? (
          <Progress job={job} />
        ) : (
          <small>
            {job.status !== 'completed' && <StatusBadge status={job.status} />}{' '}
            <Ago atMs={job.created_at_ms} />
            {ranMs === null ? '' : ` · ${duration(ranMs)}`}
          </small>
        )}
      </div>
    </article>
  );
}
