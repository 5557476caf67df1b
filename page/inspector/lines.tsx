import { useEffect, useRef, useState } from 'preact/hooks';
import arrows from 'icon:arrow-left-right';
import radio from 'icon:radio';
import { elementByArrow, isNarrow, onResize } from '../lib/screen.ts';
import { Button, Empty } from '../lib/ui.tsx';
import { type ElementRef, VirtualList } from '../jobs/virtual-list.tsx';
import { LineRow } from './line-row.tsx';
import type { Row } from './rows.ts';
import { entries } from './store.ts';
import { chosen, sideWidth } from './view-state.ts';

const ROW_HEIGHT = 34;
/** v1 above v2. */
const NARROW_ROW_HEIGHT = 54;

/** The list of the traffic. */
export function Lines({ lines }: { readonly lines: readonly Row[] }) {
  const scroller = useRef<HTMLDivElement>(null);
  const container = useRef<HTMLDivElement>(null);
  const rowHeight = isNarrow.value ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
  const { isAtEnd, goToEnd, onScroll } = useEnd(scroller, lines.length, rowHeight);
  const isEmpty = lines.length === 0;
  useEffect(() => onResize(scroller.current, measureSides), [isEmpty]);
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
        <Head />
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
        <Button look="to-end" onClick={goToEnd}>
          Newest
        </Button>
      )}
    </div>
  );
}

/** Follows the newest line until the list is scrolled back. */
function useEnd(scroller: ElementRef, lineCount: number, rowHeight: number) {
  const [isAtEnd, setAtEnd] = useState(true);
  useEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd) element.scrollTop = element.scrollHeight;
  }, [lineCount, isAtEnd]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (element !== null)
      setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < rowHeight * 2);
  };
  return { isAtEnd, goToEnd: () => setAtEnd(true), onScroll };
}

function Head() {
  return (
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
  );
}

/** The two sides share what time, arrow, size and duration leave; on a phone they are one above the other. */
function measureSides({ clientWidth: width }: Element): void {
  sideWidth.value = isNarrow.peek() ? width - 160 : (width - 116 - 28 - 66 - 76 - 14) / 2;
}

/** The arrow keys choose the line before or after. */
function moveChoice(event: KeyboardEvent): void {
  const next = elementByArrow(event, '.line-button');
  if (next !== undefined && chosen.peek() !== undefined) chosen.value = next.dataset['name'];
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
