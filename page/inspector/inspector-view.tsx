import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import arrows from 'icon:arrow-left-right';
import download from 'icon:download';
import pause from 'icon:pause';
import play from 'icon:play';
import radio from 'icon:radio';
import search from 'icon:search';
import trash from 'icon:trash';
import x from 'icon:x';
import { clockTime, duration, plural, size } from '../lib/format.ts';
import { saveBlob } from '../lib/pictures.tsx';
import { replaceQuery, route } from '../lib/route.ts';
import { Choice, Empty, Icon } from '../lib/ui.tsx';
import { VirtualList } from '../jobs/virtual-list.tsx';
import { session, tellError } from '../state.ts';
import { Detail } from './detail.tsx';
import { EntryTitle, widthOf } from './entry.tsx';
import { harOf } from './har.ts';
import { type Kind, type Line, type Row, isShown, joinLines, linesOf } from './rows.ts';
import {
  clearRecording,
  entries,
  facts,
  fault,
  isPaused,
  ordered,
  scope,
  setScope,
  togglePause,
  watchTraffic,
} from './store.ts';

const ROW_HEIGHT = 34;
/** v1 above v2. */
const NARROW_ROW_HEIGHT = 54;
const isNarrow = signal(false);
const narrow = matchMedia('(max-width: 46rem)');
isNarrow.value = narrow.matches;
narrow.addEventListener('change', () => (isNarrow.value = narrow.matches));
/** Width of one of the two sides of a row, in CSS pixels. */
const sideWidth = signal(400);
const filter = signal<{ kind: Kind; text: string; isErrorOnly: boolean }>({
  kind: 'all',
  text: '',
  isErrorOnly: false,
});
const chosen = signal<string | undefined>(undefined);

const SERVERS_TITLE =
  'Each server records what reaches it, and this page asks the one that the balancer sends it to: with sticky sessions only that one.';

export function InspectorView() {
  useEffect(watchTraffic, []);
  const promptId = route.value.query.get('prompt') ?? '';
  const list = ordered.value;
  const lines = useMemo(() => linesOf(list), [list]);
  const shown = useMemo(
    () => joinLines(lines.filter((line) => isShown(line, { ...filter.value, promptId }))),
    [lines, filter.value, promptId],
  );
  const entry = chosen.value === undefined ? undefined : entries.value.get(chosen.value);
  const joined =
    entry && shown.find(({ joined: list }) => list.some(({ name }) => name === entry.name));
  const close = (): void => {
    const { value: name } = chosen;
    chosen.value = undefined;
    document.querySelector<HTMLElement>(`[data-name="${CSS.escape(name ?? '')}"]`)?.focus();
  };
  return (
    <div
      class="view inspector-view"
      onKeyDown={(event) => event.key === 'Escape' && entry !== undefined && close()}
    >
      <Toolbar promptId={promptId} />
      <div class={`inspector-body ${entry === undefined ? '' : 'has-detail'}`}>
        <Lines lines={shown} />
        {entry !== undefined && (
          <Detail
            entry={entry}
            became={list.filter(({ causeName }) => causeName === entry.name)}
            cause={entry.causeName === undefined ? undefined : entries.value.get(entry.causeName)}
            onChoose={(name) => (chosen.value = name)}
            joined={joined?.joined ?? []}
            onClose={close}
          />
        )}
      </div>
    </div>
  );
}

function Toolbar({ promptId }: { readonly promptId: string }) {
  const known = facts.value;
  const { kind, text, isErrorOnly } = filter.value;
  const exportHar = async (): Promise<void> => {
    saveBlob(await harOf(), 'holdover.har');
  };
  return (
    <header class="toolbar">
      <div class="toolbar-row">
        <h1 tabIndex={-1}>Inspector</h1>
        <label class="search">
          <Icon shapes={search} />
          <span class="hidden">Filter the traffic</span>
          <input
            type="search"
            placeholder="Path, status, type, client or id"
            value={text}
            onInput={(event) =>
              (filter.value = { ...filter.peek(), text: event.currentTarget.value })
            }
          />
        </label>
        {session.value?.is_operator === true && (
          <Choice
            label="Whose traffic"
            value={scope.value}
            onChange={setScope}
            options={[
              { value: 'own', text: 'Mine' },
              { value: 'all', text: 'All users' },
            ]}
          />
        )}
        <button type="button" class="button" aria-pressed={isPaused.value} onClick={togglePause}>
          <Icon shapes={isPaused.value ? play : pause} />
          <span>{isPaused.value ? 'Go on' : 'Pause'}</span>
        </button>
        <button
          type="button"
          class="button"
          title="Clear"
          aria-label="Clear the list"
          onClick={() => void clearRecording()}
        >
          <Icon shapes={trash} />
        </button>
        <button
          type="button"
          class="button"
          title="Export as HAR"
          aria-label="Export as HAR"
          onClick={() => void exportHar().catch(tellError)}
        >
          <Icon shapes={download} />
          <span>HAR</span>
        </button>
      </div>
      <div class="toolbar-row is-filters">
        <Choice
          label="Kind"
          value={kind}
          onChange={(value) => (filter.value = { ...filter.peek(), kind: value })}
          options={[
            { value: 'all', text: 'All' },
            { value: 'calls', text: 'Calls' },
            { value: 'frames', text: 'Frames' },
            { value: 'events', text: 'Events' },
          ]}
        />
        <label class="field">
          <input
            type="checkbox"
            checked={isErrorOnly}
            onChange={(event) =>
              (filter.value = { ...filter.peek(), isErrorOnly: event.currentTarget.checked })
            }
          />
          <span>Errors only</span>
        </label>
        {promptId !== '' && (
          <button type="button" class="chip" aria-pressed="true" onClick={() => replaceQuery({})}>
            prompt {promptId.slice(0, 13)} <Icon shapes={x} size={14} />
            <span class="hidden">Show all prompts</span>
          </button>
        )}
        <span class="recording">
          {fault.value !== '' ? (
            <span class="fault">{fault.value}</span>
          ) : (
            <>
              <span class={`dot ${isPaused.value ? '' : 'is-recording'}`} aria-hidden="true" />
              {isPaused.value ? 'Paused' : 'Recording'} while this is open
              {known !== undefined &&
                ` · ${plural(entries.value.size, 'entry').replace('entrys', 'entries')} · ${size(known.memoryBytes)}`}
              {known !== undefined && known.dropped > 0 && ` · ${known.dropped} older ones dropped`}
              {known !== undefined && known.servers > 1 && (
                <span title={SERVERS_TITLE}>
                  {' '}
                  · traffic of {Math.min(known.answered, known.servers)} of {known.servers} servers
                </span>
              )}
            </>
          )}
        </span>
      </div>
    </header>
  );
}

function Lines({ lines }: { readonly lines: readonly Row[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  useEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd) element.scrollTop = element.scrollHeight;
  }, [lines.length, isAtEnd]);
  const isEmpty = lines.length === 0;
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => (sideWidth.value = sideOf(element.clientWidth)));
    observer.observe(element);
    return () => observer.disconnect();
  }, [isEmpty]);
  const rowHeight = isNarrow.value ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const onScroll = (): void => {
    const element = scroller.current;
    if (element !== null)
      setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight * 2);
  };
  if (isEmpty) return <Nothing />;
  return (
    <div class="scroller" ref={scroller} onScroll={onScroll}>
      <div
        class="traffic"
        role="table"
        aria-label="Traffic"
        aria-rowcount={lines.length + 1}
        onKeyDown={moveChoice}
      >
        <div class="line head" role="row">
          <span role="columnheader">Time</span>
          <span role="columnheader">v1: sent and received</span>
          <span role="columnheader">
            <span class="hidden">Direction</span>
          </span>
          <span role="columnheader">v2: what it became</span>
          <span role="columnheader" class="is-number at-size">
            Size
          </span>
          <span role="columnheader" class="is-number at-took">
            Took
          </span>
        </div>
        <div ref={container} role="rowgroup">
          <VirtualList
            items={lines}
            rowHeight={rowHeight}
            scroller={scroller}
            container={container}
            keyOf={({ name }) => name}
            onEnd={() => {}}
            render={(line, index) => <LineRow line={line} index={index} />}
          />
        </div>
      </div>
      {!isAtEnd && (
        <button type="button" class="button to-end" onClick={() => setAtEnd(true)}>
          Newest
        </button>
      )}
    </div>
  );
}

/** The two sides share what time, arrow, size and duration leave; on a phone they are one above the other. */
function sideOf(width: number): number {
  return isNarrow.peek() ? width - 160 : (width - 116 - 28 - 66 - 76 - 14) / 2;
}

function LineRow({ line, index }: { readonly line: Row; readonly index: number }) {
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
        <button
          type="button"
          class="line-button"
          data-name={first.name}
          aria-pressed={isChosen}
          onClick={() => (chosen.value = isChosen ? undefined : first.name)}
        >
          {clockTime(first.at_ms).slice(0, 8)}
          <span class="at-ms">{clockTime(first.at_ms).slice(8)}</span>
        </button>
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

function Own({ line: { first, joined } }: { readonly line: Row }) {
  const rows = first.differences ?? [];
  return (
    <span class="cell-line">
      <EntryTitle entry={first} isInList />
      {first.is_other_user && <small class="times-mark">another user</small>}
      {joined.length > 1 && <small class="times-mark">× {joined.length}</small>}
      {rows.length > 0 && (
        <small class="differs" title={`Differs from the original: ${rows.join(', ')}`}>
          <span aria-hidden="true">≠ {rows.length}</span>
          <span class="hidden">{plural(rows.length, 'difference')} from the original</span>
        </small>
      )}
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

/** The arrow keys choose the line before or after. */
function moveChoice(event: KeyboardEvent): void {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  const button = (event.target as Element).closest<HTMLElement>('.line-button');
  if (step === 0 || button === null) return;
  const buttons = [
    ...(event.currentTarget as Element).querySelectorAll<HTMLElement>('.line-button'),
  ];
  const top = (element: Element): number => element.getBoundingClientRect().top;
  const sorted = buttons.toSorted((a, b) => top(a) - top(b));
  const next = sorted[sorted.indexOf(button) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
  if (chosen.peek() !== undefined) chosen.value = next.dataset['name'];
}

function Nothing() {
  const isEmpty = entries.value.size === 0;
  return (
    <Empty
      icon={isEmpty ? radio : arrows}
      title={isEmpty ? 'Listening' : 'Nothing fits the filter'}
    >
      {isEmpty && (
        <p>
          Every v1 call and frame appears here as it happens, beside the v2 calls and events it
          became. Run a client, or the sample of the jobs page, while this page is open.
        </p>
      )}
    </Empty>
  );
}
