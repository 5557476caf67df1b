/** One call that passed the recorder; times in milliseconds since the epoch. */
export type UpstreamCall = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly startMs: number;
  /** Of the last byte of the answer, or of the terminal event that an event stream carried. */
  readonly endMs: number;
  /** When a byte that says the job has succeeded passed. */
  readonly succeededMs?: number;
};

/** Calls of one prompt in numbers. */
export type CallCounts = {
  readonly calls: number;
  /** The most calls of which each began after the one before it had ended. */
  readonly chain: number;
  /** Begun after the upstream said that the job has ended, and ended before the client's terminal frame. */
  readonly afterTerminal: number;
};

export function countCalls(calls: readonly UpstreamCall[], frameMs: number): CallCounts {
  const told = Math.min(...calls.map(({ succeededMs = Infinity }) => succeededMs));
  const between = calls.filter(({ startMs, endMs }) => startMs > told && endMs < frameMs);
  return { calls: calls.length, chain: longestChain(calls), afterTerminal: between.length };
}

export function longestChain(calls: readonly Pick<UpstreamCall, 'startMs' | 'endMs'>[]): number {
  let length = 0;
  let freeAt = -Infinity;
  for (const { startMs, endMs } of calls.toSorted((a, b) => a.endMs - b.endMs)) {
    if (startMs < freeAt) continue;
    length++;
    freeAt = endMs;
  }
  return length;
}

/** Lines such as `+12.1 to +13.0 ms GET /api/v2/jobs/{id} 200`, from the POST of the prompt on. */
export function timeline(calls: readonly UpstreamCall[], postedMs: number): readonly string[] {
  const at = (ms: number) => `+${(ms - postedMs).toFixed(1)}`;
  return calls
    .toSorted((a, b) => a.startMs - b.startMs)
    .map(({ method, path, status, startMs, endMs }) =>
      [at(startMs), 'to', at(endMs), 'ms', method, withoutIds(path), status].join(' '),
    );
}

/** The path without the parts that differ from job to job. */
export function withoutIds(path: string): string {
  return path.replace(/\?.*/, '?…').replace(/[\w-]*\d[\w-]{7,}/g, '{id}');
}
