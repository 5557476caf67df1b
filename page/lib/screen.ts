import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';

/** True while a media query holds. */
function mediaSignal(query: string): ReadonlySignal<boolean> {
  const list = matchMedia(query);
  const holds = signal(list.matches);
  list.addEventListener('change', () => (holds.value = list.matches));
  return holds;
}

export const isNarrow = mediaSignal('(max-width: 46rem)');
export const isDark = mediaSignal('(prefers-color-scheme: dark)');

/** Calls `listener` now and with each new size of the element. Returns a function that ends it. */
export function onResize(
  element: Element | null,
  listener: (element: Element) => void,
): () => void {
  const observer = new ResizeObserver(() => element && listener(element));
  if (element !== null) observer.observe(element);
  return () => observer.disconnect();
}

/** True once the element has been near the visible part. */
export function useSeen<T extends Element>() {
  const ref = useRef<T>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (element === null || isSeen) return undefined;
    const observer = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting === true && setSeen(true),
      { rootMargin: '200px' },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isSeen]);
  return [ref, isSeen] as const;
}

/** The element before or after that of the event, as an arrow key asks for it; elements are told apart by their place on the screen. */
export function elementByArrow(event: KeyboardEvent, selector: string): HTMLElement | undefined {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  const element = (event.target as Element).closest<HTMLElement>(selector);
  if (step === 0 || element === null) return undefined;
  const top = (one: Element): number => one.getBoundingClientRect().top;
  const all = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>(selector)];
  const sorted = all.toSorted((a, b) => top(a) - top(b));
  const next = sorted[sorted.indexOf(element) + step];
  if (next === undefined) return undefined;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
  return next;
}
