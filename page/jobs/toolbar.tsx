import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import grid from 'icon:layout-grid';
import play from 'icon:play';
import rows from 'icon:rows-3';
import { count } from '../lib/format.ts';
import { goTo, linkTo } from '../lib/route.ts';
import { Button, Choice, Icon, STATUS_WORDS, SearchField, type Status } from '../lib/ui.tsx';
import { runSample, useCanRunSample } from './sample.ts';
import { clients, counts, filter, refresh, setFilter } from './store.ts';

const LAYOUT_NAME = 'holdover-layout';
type Layout = 'table' | 'gallery';
export const layout = signal<Layout>(
  localStorage.getItem(LAYOUT_NAME) === 'gallery' ? 'gallery' : 'table',
);
const TYPING_MS = 250;

/** Search, layout and filters of the list. */
export function Toolbar() {
  return (
    <header class="toolbar">
      <div class="toolbar-row">
        <h1 tabIndex={-1}>Jobs</h1>
        <JobSearch />
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
        <StatusChips />
        <SelectFilter label="Client" name="client" values={[...clients.value].toSorted()} />
        <SelectFilter label="API" name="api" values={['v1', 'v2']} />
      </div>
    </header>
  );
}

/** The states of jobs with the number of jobs in each; one of them filters the list. */
function StatusChips() {
  const known = counts.value;
  const all = known && Object.values(known).reduce((sum, value) => sum + value, 0);
  const chips = [
    { value: '', word: 'All', total: all },
    ...Object.entries(STATUS_WORDS).map(([value, word]) => ({
      value,
      word,
      total: known?.[value as Status],
    })),
  ];
  return (
    <div class="chips" role="group" aria-label="State">
      {chips.map(({ value, word, total }) => (
        <button
          key={value}
          type="button"
          class="chip"
          aria-pressed={filter.value.status === value}
          onClick={() => setFilter({ status: value })}
        >
          {word}
          {total !== undefined && <span class="chip-count">{count(total)}</span>}
        </button>
      ))}
    </div>
  );
}

type SelectFilterProps = {
  readonly label: string;
  readonly name: 'client' | 'api';
  readonly values: readonly string[];
};

function SelectFilter({ label, name, values }: SelectFilterProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select
        value={filter.value[name]}
        onChange={(event) => setFilter({ [name]: event.currentTarget.value })}
      >
        <option value="">all</option>
        {values.map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

function JobSearch() {
  const filtered = filter.value.text;
  const [text, setText] = useState(filtered);
  useEffect(() => setText(filtered), [filtered]);
  useEffect(() => {
    if (text === filter.peek().text) return undefined;
    const timer = setTimeout(() => setFilter({ text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <SearchField
      label="Search jobs"
      placeholder="Name, id, client or error"
      value={text}
      onInput={setText}
    />
  );
}

/** Runs a sample where the upstream has its nodes. */
export function SampleButton({ isLarge = false }: { readonly isLarge?: boolean }) {
  const isThere = useCanRunSample();
  const [isBusy, setBusy] = useState(false);
  if (!isThere) return null;
  const onClick = async (): Promise<void> => {
    setBusy(true);
    const id = await runSample();
    setBusy(false);
    if (id !== undefined) goTo(linkTo('jobs', id));
    void refresh();
  };
  return (
    <Button
      icon={play}
      look={isLarge ? 'is-primary' : ''}
      disabled={isBusy}
      onClick={() => void onClick()}
    >
      Run a sample
    </Button>
  );
}
