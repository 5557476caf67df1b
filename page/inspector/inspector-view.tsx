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
import { EntryTitle } from './entry.tsx';
import { harOf } from './har.ts';
import { type Kind, type Line, isShown, joinSteps, linesOf } from './rows.ts';
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
const filter = signal<{ kind: Kind; text: string; isErrorOnly: boolean }>({
  kind: 'all',
  text: '',
  isErrorOnly: false,
});
const chosen = signal<string | undefined>(undefined);

export function InspectorView() {
  useEffect(watchTraffic, []);
  const promptId = route.value.query.get('prompt') ?? '';
  const list = ordered.value;
  const lines = useMemo(() => linesOf(list), [list]);
  const shown = useMemo(
    () => joinSteps(lines.filter((line) => isShown(line, { ...filter.value, promptId }))),
    [lines, filter.value, promptId],
  );
  const entry = chosen.value === undefined ? undefined : entries.value.get(chosen.value);
  return (
    <div class="view inspector-view">
      <Toolbar promptId={promptId} />
      <div class={`inspector-body ${entry === undefined ? '' : 'has-detail'}`}>
        <Lines lines={shown} />
        {entry !== undefined && (
          <Detail
            entry={entry}
            became={list.filter(({ causeName }) => causeName === entry.name)}
            cause={entry.causeName === undefined ? undefined : entries.value.get(entry.causeName)}
            onChoose={(name) => (chosen.value = name)}
            onClose={() => (chosen.value = undefined)}
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
    const { address = '', version = '' } = session.peek() ?? {};
    const json = await harOf(ordered.peek(), address, version);
    saveBlob(new Blob([json], { type: 'application/json' }), 'holdover.har');
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
            </>
          )}
        </span>
      </div>
    </header>
  );
}

function Lines({ lines }: { readonly lines: readonly (Line & { readonly times: number })[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  useEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd) element.scrollTop = element.scrollHeight;
  }, [lines.length, isAtEnd]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (element !== null)
      setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < ROW_HEIGHT * 2);
  };
  if (lines.length === 0) return <Nothing />;
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
          <span role="columnheader">v1: what the client sent and got</span>
          <span role="columnheader">
            <span class="hidden">Direction</span>
          </span>
          <span role="columnheader">v2: what it became</span>
          <span role="columnheader" class="is-number">
            Took
          </span>
        </div>
        <div ref={container} role="rowgroup">
          <VirtualList
            items={lines}
            rowHeight={ROW_HEIGHT}
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

function LineRow({
  line,
  index,
}: {
  readonly line: Line & { readonly times: number };
  readonly index: number;
}) {
  const { first, became, side, times, promptId } = line;
  const isChosen = chosen.value === first.name;
  const own = <Cell title={<EntryTitle entry={first} />} note={times > 1 ? `× ${times}` : ''} />;
  const other = <Became list={became} />;
  return (
    <div
      class={`line ${isChosen ? 'is-chosen' : ''} ${first.is_other_user ? 'is-other' : ''}`}
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
          {clockTime(first.at_ms)}
        </button>
      </span>
      <span role="cell">{side === 'v1' ? own : other}</span>
      <span class="arrow" role="cell">
        <span aria-hidden="true">{became.length === 0 ? '' : side === 'v1' ? '→' : '←'}</span>
      </span>
      <span role="cell">{side === 'v1' ? other : own}</span>
      <span class="is-number mono" role="cell">
        {first.ms !== null && first.kind !== 'frame' ? duration(first.ms) : ''}
      </span>
    </div>
  );
}

function Cell({
  title,
  note,
}: {
  readonly title: preact.ComponentChildren;
  readonly note: string;
}) {
  return (
    <span class="cell-line">
      {title}
      {note !== '' && <small>{note}</small>}
    </span>
  );
}

/** The entries that followed, those of one kind counted. */
function Became({ list }: { readonly list: Line['became'] }) {
  if (list.length === 0) return null;
  const groups = new Map<string, { readonly entry: Line['became'][number]; count: number }>();
  for (const entry of list) {
    const key =
      entry.kind === 'frame' ? `${entry.type}` : `${entry.method} ${entry.target} ${entry.status}`;
    const group = groups.get(key);
    if (group) group.count++;
    else groups.set(key, { entry, count: 1 });
  }
  return (
    <span class="cell-line became">
      {[...groups].map(([key, { entry, count }]) => (
        <span class="became-one" key={key}>
          <EntryTitle entry={entry} />
          {count > 1 && <small>× {count}</small>}
        </span>
      ))}
    </span>
  );
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
