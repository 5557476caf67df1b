import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Clock } from '../lib/clock.ts';
import { yieldEvery } from '../lib/event-loop.ts';
import type { JobEvent, JobEventData } from '../protocol/job-api.ts';
import { type Json, stringifyJson } from '../protocol/json.ts';
import { IS_TERMINAL } from '../protocol/v2.ts';

/** A comment line, which shows proxies and readers that the stream is alive. */
const KEEP_ALIVE = ': keep-alive\n\n';
const KEEP_ALIVE_MS = 15_000;

/** The number of events that are written before other work gets its turn. */
const EVENTS_PER_TURN = 32;

/** A reader that accepts nothing for this many keep-alive intervals is disconnected. */
const STALLED_KEEP_ALIVES = 4;

export type StreamOptions = {
  /** The interval of the keep-alive comments. Default: `KEEP_ALIVE_MS`. */
  readonly keepAliveMs?: number | undefined;
  readonly clock: Clock;
  /** Aborts when the reader disconnects. */
  readonly signal: AbortSignal;
};

/**
 * Writes the events of a job until its terminal status, until the events end, or until the reader
 * disconnects. The events wait in their subscription: a slow reader gets only the newest previews. A
 * reader that accepts nothing is disconnected and reads the job instead.
 */
export async function streamEvents(
  response: ServerResponse,
  events: AsyncIterable<JobEvent>,
  options: StreamOptions,
): Promise<void> {
  response.write(KEEP_ALIVE);
  const ended = new AbortController();
  void sendKeepAlives(response, options, ended.signal);
  try {
    await writeEvents(response, events, options);
  } finally {
    ended.abort();
    response.end();
  }
}

/** Writes a comment line at every interval until the stream has ended. */
async function sendKeepAlives(
  response: ServerResponse,
  { keepAliveMs = KEEP_ALIVE_MS, clock, signal }: StreamOptions,
  ended: AbortSignal,
): Promise<void> {
  const wait = (): Promise<boolean> =>
    clock.sleep(keepAliveMs, ended).then(
      () => !ended.aborted,
      () => false,
    );
  while (await wait()) {
    if (!response.writableNeedDrain && !signal.aborted) response.write(KEEP_ALIVE);
  }
}

/** The bytes of one event. */
function eventText(event: JobEvent): string {
  return `event: ${event.event}\ndata: ${stringifyJson(dataOf(event))}\n\n`;
}

function dataOf(event: JobEvent): Json {
  if (event.event === 'preview') return previewData(event.data);
  if (event.event !== 'status') return event.data;
  const { job, ...status } = event.data;
  return { ...job, ...status };
}

async function writeEvents(
  response: ServerResponse,
  events: AsyncIterable<JobEvent>,
  options: StreamOptions,
): Promise<void> {
  const pause = yieldEvery(EVENTS_PER_TURN);
  for await (const event of events) {
    if (options.signal.aborted) return;
    if (!response.write(eventText(event))) await waitForDrain(response, options);
    else await pause();
    if (event.event === 'status' && IS_TERMINAL[event.data.status]) return;
  }
}

async function waitForDrain(
  response: ServerResponse,
  { keepAliveMs = KEEP_ALIVE_MS, clock, signal }: StreamOptions,
): Promise<void> {
  if (signal.aborted) return;
  const drained = new AbortController();
  clock.sleep(STALLED_KEEP_ALIVES * keepAliveMs, drained.signal).then(
    () => response.destroy(),
    () => {},
  );
  try {
    await once(response, 'drain', { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    drained.abort();
  }
}

function previewData(data: JobEventData['preview']): Json {
  const { bytes, ...rest } = data;
  const { buffer, byteOffset, byteLength } = bytes;
  return { ...rest, data_base64: Buffer.from(buffer, byteOffset, byteLength).toString('base64') };
}
