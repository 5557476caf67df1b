import { useEffect, useRef, useState } from 'preact/hooks';
import ban from 'icon:ban';
import { count, plural } from '../lib/format.ts';
import { Button } from '../lib/ui.tsx';
import { isLive } from './job-row.tsx';
import { cancel, cancelAll, jobs, liveCount, selection } from './store.ts';

/** The actions for the chosen jobs. */
export function SelectionBar() {
  const chosen = jobs.value.filter(({ key }) => selection.value.has(key));
  const live = chosen.filter(isLive);
  if (chosen.length === 0) {
    const total = liveCount.value;
    if (total < 2) return null;
    return (
      <div class="selection">
        <span>{plural(total, 'job')} running or queued</span>
        <CancelAllButton total={total} />
      </div>
    );
  }
  return (
    <div class="selection">
      <span>{plural(chosen.length, 'job')} selected</span>
      <Button
        icon={ban}
        look="is-small"
        disabled={live.length === 0}
        onClick={() => void cancel(live.map(({ id }) => id))}
      >
        Cancel {live.length}
      </Button>
      {chosen.length < jobs.value.length && (
        <Button look="is-small" onClick={selectAll}>
          Select all
        </Button>
      )}
      <Button look="is-small" onClick={() => (selection.value = new Set())}>
        Clear selection
      </Button>
    </div>
  );
}

/** Asks once more before it cancels. */
function CancelAllButton({ total }: { readonly total: number }) {
  const [isAsked, setAsked] = useState(false);
  if (!isAsked) {
    return (
      <Button icon={ban} look="is-small" onClick={() => setAsked(true)}>
        Cancel all
      </Button>
    );
  }
  return (
    <>
      <Button
        look="is-small is-danger"
        onClick={() => void cancelAll().then(() => setAsked(false))}
      >
        Cancel {count(total)} jobs
      </Button>
      <Button look="is-small" onClick={() => setAsked(false)}>
        Keep them
      </Button>
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
