import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { onResize } from '../lib/screen.ts';
import { noteScroll } from '../lib/scrolling.ts';

/** Rows beyond the visible ones on each side. */
const OVERSCAN = 8;

export type ElementRef = { readonly current: HTMLElement | null };

type VirtualListProps<T> = {
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly columns?: number;
  readonly scroller: ElementRef;
  readonly container: ElementRef;
  readonly keyOf: (item: T) => string;
  readonly render: (item: T, index: number) => ComponentChildren;
  readonly onEnd: () => void;
};

/**
 * Renders only the rows that can be seen, all of the same height, in columns of the same width.
 * `onEnd` is called when the last row comes near. A row is drawn anew when its item is another
 * object: `render` uses nothing else, but for signals.
 */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, rowHeight, columns = 1, onEnd } = props;
  const rows = Math.ceil(items.length / columns);
  const { first, last } = useVisibleRows(props);

  useEffect(() => {
    if (last >= rows) onEnd();
  }, [last, rows]);

  const from = Math.min(first, Math.max(0, rows - 1)) * columns;
  const shown = useDrawnItems(props, { from, to: (last + 1) * columns });
  return (
    <div class="virtual" style={{ height: `${rows * rowHeight}px` }} role="presentation">
      {shown}
    </div>
  );
}

type Range = { readonly first: number; readonly last: number };

/** The first and last row to render; it follows the scroller. */
function useVisibleRows({
  rowHeight,
  scroller,
  container,
}: Pick<VirtualListProps<never>, 'rowHeight' | 'scroller' | 'container'>): Range {
  const [range, setRange] = useState<Range>({ first: 0, last: 30 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return undefined;
    const update = (): void => {
      const top = container.current?.offsetTop ?? 0;
      const from = Math.max(0, element.scrollTop - top);
      const first = Math.max(0, Math.floor(from / rowHeight) - OVERSCAN);
      const last = Math.ceil((from + element.clientHeight) / rowHeight) + OVERSCAN;
      setRange((known) => (known.first === first && known.last === last ? known : { first, last }));
    };
    const onScroll = ({ timeStamp }: Event): void => {
      noteScroll(element.scrollTop, timeStamp);
      update();
    };
    update();
    element.addEventListener('scroll', onScroll, { passive: true });
    const endResize = onResize(element, update);
    return () => {
      element.removeEventListener('scroll', onScroll);
      endResize();
    };
  }, [rowHeight]);
  return range;
}

type Drawn<T> = { readonly item: T; readonly index: number; readonly element: VNode };

/** The items of this range, in their places. */
function useDrawnItems<T>(
  { items, rowHeight, columns = 1, keyOf, render }: VirtualListProps<T>,
  { from, to }: { readonly from: number; readonly to: number },
): VNode[] {
  const drawn = useRef(new Map<string, Drawn<T>>());
  const layout = `${rowHeight} ${columns}`;
  const drawnFor = useRef(layout);
  const known = drawnFor.current === layout ? drawn.current : new Map<string, Drawn<T>>();
  drawnFor.current = layout;
  drawn.current = new Map();
  return items.slice(from, to).map((item, at) => {
    const index = from + at;
    const key = keyOf(item);
    const before = known.get(key);
    // An equal element is not looked at again: of a row that stays, nothing is done.
    const element =
      before?.item === item && before.index === index
        ? before.element
        : placed({ key, index, columns, rowHeight, content: render(item, index) });
    drawn.current.set(key, { item, index, element });
    return element;
  });
}

function placed({
  key,
  index,
  columns,
  rowHeight,
  content,
}: {
  readonly key: string;
  readonly index: number;
  readonly columns: number;
  readonly rowHeight: number;
  readonly content: ComponentChildren;
}): VNode {
  const style = {
    top: `${Math.floor(index / columns) * rowHeight}px`,
    left: `${((index % columns) / columns) * 100}%`,
    width: `${100 / columns}%`,
    height: `${rowHeight}px`,
  };
  return (
    <div key={key} class="virtual-item" role="presentation" style={style}>
      {content}
    </div>
  );
}
