import { useEffect, useRef, useState } from 'preact/hooks';
import ban from 'icon:ban';
import { count, plural } from '../lib/format.ts';
import { Icon } from '../lib/ui.tsx';
import { isLive } from './job-row.tsx';
import { cancel, cancelAll, counts, jobs, selection } from './store.ts';

/** The actions for the chosen jobs. */
export function SelectionBar() {
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
      {chosen.length < jobs.value.length && (
        <button type="button" class="button is-small" onClick={selectAll}>
          Select all
        </button>
      )}
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

/** Selects all jobs that are in the list. */
export function SelectAll() {
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
      onChange={() => (isAll ? (selection.value = new Set()) : selectAll())}
    />
  );
}

function selectAll(): void {
  selection.value = new Set(jobs.peek().map(({ key }) => key));
}
