import { isJsonObject, parseJson } from '../protocol/json.ts';
import type { ProgressState } from '../translate/progress/progress-state.ts';

/**
 * When the nodes of a prompt ran, by node id: start and end in milliseconds since the start of the
 * prompt. Holds only nodes whose start was reported.
 */
export type NodeTimes = Readonly<Record<string, readonly [startMs: number, endMs: number]>>;

/** The page shows no picture of node times for a larger graph. */
const MAX_NODES = 1000;

/** Returns the stored form of the times. `undefined`: no times were reported, or too many. */
export function nodeTimesJson({
  runs,
  startedAtMs: origin,
  endedAtMs: end,
}: ProgressState): string | undefined {
  if (origin === null || end === null || runs.size === 0 || runs.size > MAX_NODES) return undefined;
  const times = [...runs].flatMap(([nodeId, { startedAtMs, endedAtMs }]) =>
    startedAtMs === null ? [] : [[nodeId, [startedAtMs - origin, (endedAtMs ?? end) - origin]]],
  );
  return times.length === 0 ? undefined : JSON.stringify(Object.fromEntries(times));
}

/** Reads what `nodeTimesJson` wrote. */
export function readNodeTimes(text: string | null): NodeTimes {
  const times = parseJson(text ?? '{}');
  return isJsonObject(times) ? (times as unknown as NodeTimes) : {};
}
