import { type ReadonlySignal, signal } from '@preact/signals';
import { useRef } from 'preact/hooks';

/** Too fast for pictures: each one is fetched, decoded and painted. */
const MOVING_PX_PER_MS = 0.8;
/** Too fast to read a row. */
const FAST_PX_PER_MS = 2.5;
/** Without an event for this long the list rests. */
const REST_MS = 120;

const isMoving = signal(false);
const isFast = signal(false);
let last = { topPx: 0, atMs: 0 };
let restTimer: ReturnType<typeof setTimeout> | undefined;

/** A list was scrolled to this position. */
export function noteScroll(topPx: number, atMs: number): void {
  const speed = Math.abs(topPx - last.topPx) / Math.max(1, atMs - last.atMs);
  last = { topPx, atMs };
  isMoving.value = speed > MOVING_PX_PER_MS;
  isFast.value = speed > FAST_PX_PER_MS;
  clearTimeout(restTimer);
  if (isMoving.peek()) restTimer = setTimeout(rest, REST_MS);
}

function rest(): void {
  isMoving.value = false;
  isFast.value = false;
}

/** True from when the list is slow enough for whole rows; until then a row has only its texts. */
export function useIsWhole(): boolean {
  return useOnceNot(isFast);
}

/** True from when the list is slow enough for pictures. */
export function useIsResting(): boolean {
  return useOnceNot(isMoving);
}

function useOnceNot(condition: ReadonlySignal<boolean>): boolean {
  const hasEnded = useRef(false);
  if (!hasEnded.current && !condition.value) hasEnded.current = true;
  return hasEnded.current;
}
