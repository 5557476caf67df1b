import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

/** Rows beyond the visible ones on each side. */
const OVERSCAN = 8;

type ElementRef = { readonly current: HTMLElement | null };

type Range = { readonly first: number; readonly last: number };

/**
 * Renders only the rows that can be seen, all of the same height, in columns of the same width.
 * `onEnd` is called when the last row comes near.
 */
export function VirtualList<T>({
  items,
  rowHeight,
  columns = 1,
  scroller,
  container,
  keyOf,
  render,
  onEnd,
}: {
  readonly items: readonly T[];
  readonly rowHeight: number;
  readonly columns?: number;
  readonly scroller: ElementRef;
  readonly container: ElementRef;
  readonly keyOf: (item: T) => string;
  readonly render: (item: T, index: number) => ComponentChildren;
  readonly onEnd: () => void;
}) {
  const [range, setRange] = useState<Range>({ first: 0, last: 30 });
  const rows = Math.ceil(items.length / columns);

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
    update();
    element.addEventListener('scroll', update, { passive: true });
    const observer = new ResizeObserver(update);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', update);
      observer.disconnect();
    };
  }, [rowHeight]);

  useEffect(() => {
    if (range.last >= rows) onEnd();
  }, [range.last, rows]);

  const from = Math.min(range.first, Math.max(0, rows - 1)) * columns;
  const shown = items.slice(from, (range.last + 1) * columns);
  return (
    <div class="virtual" style={{ height: `${rows * rowHeight}px` }} role="presentation">
      {shown.map((item, at) => {
        const index = from + at;
        const top = Math.floor(index / columns) * rowHeight;
        const left = `${((index % columns) / columns) * 100}%`;
        return (
          <div
            key={keyOf(item)}
            class="virtual-item"
            role="presentation"
            style={{
              height: `${rowHeight}px`,
              width: `${100 / columns}%`,
              left,
              transform: `translateY(${top}px)`,
            }}
          >
            {render(item, index)}
          </div>
        );
      })}
    </div>
  );
}
