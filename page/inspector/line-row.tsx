import { clockTime, duration, size } from '../lib/format.ts';
import { EntryTitle, widthOf } from './entry.tsx';
import type { Line, Row } from './rows.ts';
import { chosen, sideWidth } from './view-state.ts';

/** A call or frame of one side, and the entries of the other side that followed from it. */
export function LineRow({ line, index }: { readonly line: Row; readonly index: number }) {
  const { first, became, side, joined, promptId } = line;
  const isChosen = joined.some(({ name }) => name === chosen.value);
  const own = <Own line={line} />;
  const other = <Became list={became} />;
  const isEmpty = became.length === 0;
  const bytes = first.bytes ?? first.response_bytes;
  return (
    <div
      class={`line is-${side} ${isEmpty ? 'is-single' : ''} ${isChosen ? 'is-chosen' : ''} ${first.is_other_user ? 'is-other' : ''}`}
      role="row"
      aria-rowindex={index + 2}
    >
      <span class="mono at" role="cell">
        <span class="prompt-mark" style={{ background: colorOf(promptId) }} aria-hidden="true" />
        <LineButton entry={first} isChosen={isChosen} />
      </span>
      <span class="at-v1" role="cell">
        {side === 'v1' ? own : other}
      </span>
      <span class="arrow" role="cell">
        <span aria-hidden="true">{isEmpty ? '' : side === 'v1' ? '→' : '←'}</span>
      </span>
      <span class="at-v2" role="cell">
        {side === 'v1' ? other : own}
      </span>
      <span class="is-number mono at-size" role="cell">
        {bytes === undefined ? '' : size(bytes)}
      </span>
      <span class="is-number mono at-took" role="cell">
        {first.ms !== null && first.kind !== 'frame' ? duration(first.ms) : ''}
      </span>
    </div>
  );
}

/** Its time; it opens the details. */
function LineButton({
  entry: { name, at_ms: atMs },
  isChosen,
}: {
  readonly entry: Row['first'];
  readonly isChosen: boolean;
}) {
  return (
    <button
      type="button"
      class="line-button"
      data-name={name}
      aria-pressed={isChosen}
      onClick={() => (chosen.value = isChosen ? undefined : name)}
    >
      {clockTime(atMs).slice(0, 8)}
      <span class="at-ms">{clockTime(atMs).slice(8)}</span>
    </button>
  );
}

function Own({ line: { first, joined } }: { readonly line: Row }) {
  return (
    <span class="cell-line">
      <EntryTitle entry={first} isInList />
      {first.is_other_user && <small class="times-mark">another user</small>}
      {joined.length > 1 && <small class="times-mark">× {joined.length}</small>}
    </span>
  );
}

type Group = { readonly entry: Line['became'][number]; count: number };

/** The entries that followed, those of one kind counted; as many as the width takes, and how many more there are. */
function Became({ list }: { readonly list: Line['became'] }) {
  if (list.length === 0) return null;
  const groups = [...groupsOf(list)];
  const { shown, hasText } = fitting(groups, sideWidth.value);
  const more = groups.slice(shown).reduce((sum, { count }) => sum + count, 0);
  return (
    <span class="cell-line became">
      {groups.slice(0, shown).map(({ entry, count }) => (
        <span class="became-one" key={entry.name}>
          <EntryTitle entry={entry} isInList hasText={hasText} />
          {count > 1 && <small>× {count}</small>}
        </span>
      ))}
      {more > 0 && <small title="All of them are in the details">+ {more}</small>}
    </span>
  );
}

function groupsOf(list: Line['became']): Iterable<Group> {
  const groups = new Map<string, Group>();
  for (const entry of list) {
    const key =
      entry.kind === 'frame' ? `${entry.type}` : `${entry.method} ${entry.target} ${entry.status}`;
    const group = groups.get(key);
    if (group) group.count++;
    else groups.set(key, { entry, count: 1 });
  }
  return groups.values();
}

const GAP_PX = 14;
const COUNT_PX = 34;

/** None is cut off in the middle: texts go first, then the last entries. */
function fitting(groups: readonly Group[], width: number) {
  const widthWith = (list: readonly Group[], hasText: boolean): number =>
    list.reduce(
      (sum, { entry, count }) =>
        sum + widthOf(entry, hasText) + GAP_PX + (count > 1 ? COUNT_PX : 0),
      0,
    );
  if (widthWith(groups, true) <= width) return { shown: groups.length, hasText: true };
  let shown = groups.length;
  while (
    shown > 1 &&
    widthWith(groups.slice(0, shown), false) + (shown < groups.length ? COUNT_PX : 0) > width
  ) {
    shown--;
  }
  return { shown, hasText: shown === 1 };
}

/** One colour for each prompt, so that its lines are found. */
function colorOf(promptId: string | null): string {
  if (promptId === null) return 'transparent';
  let hash = 0;
  for (const char of promptId) hash = (hash * 31 + char.charCodeAt(0)) >>> 0;
  return `hsl(${(hash * 47) % 360} 65% 52%)`;
}
