import { setTimeout as delay } from 'node:timers/promises';
import { parseJson } from '../../../src/protocol/json.ts';
import { type Answer, resend } from './golden-http.ts';
import { ownFrame, recordedFrame } from './golden-normalize.ts';
import {
  type GoldenExchange,
  type Scenario,
  type Step,
  type WsRecord,
  isReceived,
} from './golden-scenario.ts';
import { type GoldenSocket, openGoldenSocket } from './golden-socket.ts';
import { frameSummary } from './golden-frame-summary.ts';

/** The answers and frames of our server when a scenario was replayed to it. */
export type Replayed = {
  readonly answers: readonly Answer[];
  readonly sockets: ReadonlyMap<string, GoldenSocket>;
  /** Recorded frames waited for in vain before the next step: the replay went on without. */
  readonly stalls: readonly string[];
  /** Our text with the recorded ids in place of ours. */
  asRecorded(text: string): string;
};

/** A recording is a second long: waiting longer is of no use. */
const PATIENCE_MS = 5000;

type Stage = {
  readonly port: number;
  readonly scenario: Scenario;
  readonly sockets: Map<string, GoldenSocket>;
  readonly answers: Answer[];
  readonly stalls: string[];
  /** Recorded prompt id to ours. */
  readonly ids: Map<string, string>;
};

/** Plays a scenario to a server: each step waits until what preceded it then has happened now. */
export async function replay(port: number, scenario: Scenario): Promise<Replayed> {
  const [sockets, ids] = [new Map<string, GoldenSocket>(), new Map<string, string>()];
  const stage: Stage = { port, scenario, sockets, ids, answers: [], stalls: [] };
  for (const step of scenario.steps) {
    await catchUp(stage, step);
    await perform(stage, step);
  }
  await catchUp(stage, 'end');
  await untilIdle(port);
  for (const socket of sockets.values()) await socket.settle();
  return { ...stage, asRecorded: (text) => swap(text, ids, 'to recorded') };
}

async function perform(stage: Stage, step: Step): Promise<void> {
  if (step.kind === 'ws') return performOnSocket(stage, step.record);
  const answer = await resend(stage.port, step.exchange, (text) => ours(stage, text));
  stage.answers[step.index] = answer;
  mapId(stage, step.exchange, answer);
}

async function performOnSocket({ port, sockets }: Stage, record: WsRecord): Promise<void> {
  const { socket: label, event, path } = record;
  if (event === 'open') {
    const headers = Object.entries(record.headers ?? {}).map(([name, value]) => [
      name,
      atPort(value, port),
    ]);
    sockets.set(
      label,
      await openGoldenSocket(`ws://127.0.0.1:${port}${path}`, Object.fromEntries(headers)),
    );
    // The first frame comes with the upgrade.
    while (sockets.get(label)?.frames.length === 0)
      await sockets.get(label)?.nextFrame(PATIENCE_MS);
  } else if (event === 'close-by-client') {
    // Frames that another socket has are on their way to this one.
    await sockets.get(label)?.settle();
    await sockets.get(label)?.close();
  } else sockets.get(label)?.send(record);
}

/** Until every socket has received what the recorded one had by then. */
async function catchUp(stage: Stage, step: Step | 'end'): Promise<void> {
  for (const [label, socket] of stage.sockets) {
    if (socket.closeCode() !== undefined) continue;
    const received = receivedBefore(stage.scenario, label, step).filter(isAwaited);
    const last = received.at(-1);
    if (last === undefined) continue;
    const needed = received.filter((summary) => summary === last).length;
    const deadlineMs = performance.now() + PATIENCE_MS;
    while (countOf(socket, last) < needed) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0 || socket.closeCode() !== undefined) {
        stage.stalls.push(`${label}: ${last} (${needed})`);
        break;
      }
      await socket.nextFrame(leftMs);
    }
  }
}

/** How often the count of what is left is told depends on who else calls; nothing left is an end. */
function isAwaited(summary: string): boolean {
  return !/^S\([1-9]/.test(summary);
}

/** Prompts the original never ran, or ran in silence, end too. */
async function untilIdle(port: number): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/prompt`);
    const { exec_info: info } = (await response.json()) as {
      exec_info: { queue_remaining: number };
    };
    if (info.queue_remaining === 0) return;
    await delay(5);
  }
}

/**
 * Sockets are recorded in one file, calls in another. Of the frames of the very millisecond of a
 * call those came before it that end something: no call ends it so fast.
 */
function receivedBefore(
  { records }: Scenario,
  label: string,
  step: Step | 'end',
): readonly string[] {
  const index =
    step === 'end' ? records.length : step.kind === 'ws' ? records.indexOf(step.record) : undefined;
  const own = records
    .filter((record, i) => isEarlier(record, i, { index, step }))
    .filter((record) => record.socket === label && isReceived(record));
  const gists = own.map((record) => frameSummary(recordedFrame(record)));
  if (step === 'end' || step.kind === 'ws') return gists;
  const { atMs } = step;
  const last = own.findLastIndex(
    ({ t_ms: ms }, i) => ms < atMs || gists[i] === 'X(null)' || gists[i] === 'S(0)',
  );
  return gists.slice(0, last + 1);
}

function isEarlier(
  record: WsRecord,
  index: number,
  before: { readonly index: number | undefined; readonly step: Step | 'end' },
): boolean {
  if (before.index !== undefined) return index < before.index;
  return before.step !== 'end' && record.t_ms <= before.step.atMs;
}

/** Of the frames of each socket that were counted. */
const countedSummaries = new WeakMap<GoldenSocket, string[]>();

/** Each frame is read once: this is asked again at every frame. */
function countOf(socket: GoldenSocket, wanted: string): number {
  const summaries = countedSummaries.get(socket) ?? [];
  countedSummaries.set(socket, summaries);
  for (const frame of socket.frames.slice(summaries.length))
    summaries.push(frameSummary(ownFrame(frame)));
  return summaries.filter((summary) => summary === wanted).length;
}

/** Ids the server made then, and the ones it makes now. */
function mapId({ ids }: Stage, exchange: GoldenExchange, answer: Answer): void {
  const recorded = (exchange.response.body_json as { prompt_id?: string } | null | undefined)
    ?.prompt_id;
  if (recorded === undefined || answer.status !== 200) return;
  const mine = (parseJson(answer.body.toString()) as { prompt_id?: string }).prompt_id;
  if (mine !== undefined) ids.set(recorded, mine);
}

function ours({ ids, port }: Stage, text: string): string {
  return swap(atPort(text, port), ids, 'to ours');
}

function atPort(text: string, port: number): string {
  return text.replaceAll(':8188', `:${port}`);
}

function swap(
  text: string,
  ids: ReadonlyMap<string, string>,
  way: 'to ours' | 'to recorded',
): string {
  let swapped = text;
  for (const [recorded, mine] of ids) {
    const [from, to] = way === 'to ours' ? [recorded, mine] : [mine, recorded];
    if (from !== to) swapped = swapped.replaceAll(from, to);
  }
  return swapped;
}
