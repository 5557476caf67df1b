import { setTimeout as delay } from 'node:timers/promises';
import { type Json, isJsonObject, parseJson } from '../../../src/protocol/json.ts';
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
  /** Our text with the recorded ids in place of ours. */
  asRecorded(text: string): string;
};

/** Within the time limit of a test, which would not name the frame that did not come. */
const PATIENCE_MS = 20_000;

type Stage = {
  readonly port: number;
  readonly scenario: Scenario;
  readonly sockets: Map<string, GoldenSocket>;
  readonly answers: Answer[];
  /** Recorded prompt id to ours. */
  readonly ids: Map<string, string>;
};

/** Plays a scenario to a server: each step waits until what preceded it then has happened now. */
export async function replay(port: number, scenario: Scenario): Promise<Replayed> {
  const [sockets, ids] = [new Map<string, GoldenSocket>(), new Map<string, string>()];
  const stage: Stage = { port, scenario, sockets, ids, answers: [] };
  for (const step of scenario.steps) {
    await catchUp(stage, step);
    await perform(stage, step);
  }
  await catchUp(stage, 'end');
  await untilIdle(port);
  await untilToldOfEnd(stage);
  mapAssetIds(stage);
  return { ...stage, asRecorded: (text) => swap(text, ids, 'to recorded') };
}

async function perform(stage: Stage, step: Step): Promise<void> {
  if (step.kind === 'ws') return performOnSocket(stage, step.record);
  const toldBefore = new Map([...stage.sockets].map(([label, one]) => [label, counts(stage, one)]));
  const answer = await resend(stage.port, step.exchange, (text) => ours(stage, text));
  stage.answers[step.index] = answer;
  if (!mapId(stage, step.exchange, answer)) return;
  // Its frames begin some milliseconds after the answer, with a count, which a call before it would change.
  await waitFor(stage, 'count', (socket, label) => {
    return counts(stage, socket).length > (toldBefore.get(label)?.length ?? 0);
  });
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
    const received = receivedBefore(stage.scenario, label, step).filter(isAwaited);
    const last = received.at(-1);
    if (last === undefined) continue;
    const needed = received.filter((frame) => frame === last).length;
    const isThere = () => namesOf(stage, socket).filter((name) => name === last).length >= needed;
    await waitForSocket(stage, [label, socket], `${last} (${needed})`, isThere);
  }
}

type IsThere = (socket: GoldenSocket, label: string) => boolean;

async function waitFor(stage: Stage, what: string, isThere: IsThere): Promise<void> {
  for (const entry of stage.sockets) await waitForSocket(stage, entry, what, isThere);
}

/** Until an open socket has received this. */
async function waitForSocket(
  stage: Stage,
  [label, socket]: readonly [string, GoldenSocket],
  what: string,
  isThere: IsThere,
): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  if (socket.closeCode() !== undefined) return;
  while (!isThere(socket, label)) {
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0 || socket.closeCode() !== undefined)
      throw new Error(`no ${what} on ${label} after ${namesOf(stage, socket).join(', ')}`);
    await socket.nextFrame(leftMs);
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

/** A prompt leaves the count with its history, before its last frames: the first of these says that nothing is left. */
async function untilToldOfEnd(stage: Stage): Promise<void> {
  for (const socket of stage.sockets.values()) await socket.settle();
  await waitFor(stage, 'the last count', (socket) => {
    return counts(stage, socket).at(-1)?.startsWith('S(0)') !== false;
  });
  for (const socket of stage.sockets.values()) await socket.settle();
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
  const names = own.map((record) => nameOf(recordedFrame(record)));
  if (step === 'end' || step.kind === 'ws') return names;
  const { atMs } = step;
  const last = own.findLastIndex(({ t_ms: ms }, i) => ms < atMs || isEnd(names[i] ?? ''));
  return names.slice(0, last + 1);
}

function isEarlier(
  record: WsRecord,
  index: number,
  before: { readonly index: number | undefined; readonly step: Step | 'end' },
): boolean {
  if (before.index !== undefined) return index < before.index;
  return before.step !== 'end' && record.t_ms <= before.step.atMs;
}

function isEnd(name: string): boolean {
  return /^(X\(null\)|S\(0\)) /.test(name);
}

/** A frame in words, with its prompt: another prompt may end meanwhile. */
function nameOf(frame: Json): string {
  const { data } = frame as { readonly data?: { readonly prompt_id?: string } };
  return `${frameSummary(frame)} ${data?.prompt_id ?? ''}`;
}

/** The frames of each socket that were read. */
const readNames = new WeakMap<GoldenSocket, string[]>();

/** The frames that a socket has received, with the recorded ids. Each is read once: this is asked at every frame. */
function namesOf({ ids }: Stage, socket: GoldenSocket): readonly string[] {
  const names = readNames.get(socket) ?? [];
  readNames.set(socket, names);
  for (const frame of socket.frames.slice(names.length))
    names.push(swap(nameOf(ownFrame(frame)), ids, 'to recorded'));
  return names;
}

/** The counts of prompts that are left, as a socket was told them. */
function counts(stage: Stage, socket: GoldenSocket): readonly string[] {
  return namesOf(stage, socket).filter((name) => name.startsWith('S('));
}

/** Ids the server made then, and the ones it makes now. True for a prompt that was accepted then and now. */
function mapId({ ids }: Stage, exchange: GoldenExchange, answer: Answer): boolean {
  const recorded = (exchange.response.body_json as { prompt_id?: string } | null | undefined)
    ?.prompt_id;
  if (recorded === undefined || answer.status !== 200) return false;
  const mine = (parseJson(answer.body.toString()) as { prompt_id?: string }).prompt_id;
  if (mine !== undefined) ids.set(recorded, mine);
  return mine !== undefined;
}

/** Asset ids in the answers and in the outputs of nodes, which the recorded server made like those of prompts. */
function mapAssetIds({ scenario, sockets, answers, ids }: Stage): void {
  for (const [index, { answerJson }] of scenario.exchanges.entries()) {
    const answer = answers[index];
    if (answerJson === undefined || !isJson(answer)) continue;
    pairIds(answerJson, parseJson(swap(answer.body.toString(), ids, 'to recorded')), ids);
  }
  for (const [label, socket] of sockets) {
    const isExecuted = (frame: Json): boolean => frameSummary(frame).startsWith('executed(');
    const mine = socket.frames.map(ownFrame).filter(isExecuted);
    scenario.records
      .filter((record) => record.socket === label && isReceived(record))
      .map(recordedFrame)
      .filter(isExecuted)
      .forEach((frame, i) => pairIds(frame, mine[i] ?? null, ids));
  }
}

function isJson(answer: Answer | undefined): answer is Answer {
  return answer?.headers['content-type']?.startsWith('application/json') === true;
}

function pairIds(recorded: Json, mine: Json, ids: Map<string, string>): void {
  if (!isJsonObject(recorded) || !isJsonObject(mine)) {
    if (Array.isArray(recorded) && Array.isArray(mine))
      recorded.forEach((item: Json, i) =>
        pairIds(item, (mine[i] as Json | undefined) ?? null, ids),
      );
    return;
  }
  for (const [name, member] of Object.entries(recorded)) {
    const own = mine[name];
    const isAssetId = name === 'id' && ('filename' in recorded || 'asset_hash' in recorded);
    if (isAssetId && typeof member === 'string' && typeof own === 'string') {
      if (!ids.has(member)) ids.set(member, own);
    } else if (own !== undefined) pairIds(member, own, ids);
  }
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
