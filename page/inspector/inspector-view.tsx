import { useEffect, useMemo } from 'preact/hooks';
import { route } from '../lib/route.ts';
import { Detail } from './detail.tsx';
import { Lines } from './lines.tsx';
import { isShown, joinLines, linesOf } from './rows.ts';
import { entries, ordered, watchTraffic } from './store.ts';
import { Toolbar } from './toolbar.tsx';
import { chosen, filter } from './view-state.ts';

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
