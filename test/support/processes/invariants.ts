import { type Dirent, readFileSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Holdover } from './holdover.ts';
import type { HostileV2, Recorded, WireJob } from '../upstreams/hostile-v2.ts';
import { prefixOf } from '../upstreams/job-scripts.ts';
import { testedUpstream } from '../upstreams/tested-upstream.ts';
import type { Received } from '../clients/v1-client.ts';
import { filesWith } from './expect-healthy.ts';

/** An answer a v1 client got. */
export type AnswerRecord = {
  readonly account: string;
  readonly what: string;
  readonly status: number;
  readonly text: string;
};

/** A `POST /prompt` and what came of it; `marker` is in its workflow and nowhere else. */
export type PromptRecord = {
  readonly account: string;
  readonly marker: string;
  readonly promptId: string | undefined;
  readonly status: number;
};

/** The frames one socket of one client received. */
export type SocketRecord = {
  readonly account: string;
  readonly frames: readonly Received[];
  /** Prompts whose history could not be read as soon as their last frame arrived. */
  readonly early: readonly string[];
  /** It was there before its prompts and to their end. */
  readonly isWhole: () => boolean;
  readonly openedAtMs: number;
};

/** Everything that was said and done in a test, by all clients, the process and its upstream. */
export type Run = {
  readonly upstream: HostileV2;
  readonly holdover: () => Holdover;
  /** Logs of processes that are gone. */
  readonly oldLogs: readonly string[];
  readonly answers: readonly AnswerRecord[];
  readonly posts: readonly PromptRecord[];
  readonly sockets: readonly SocketRecord[];
  readonly keys: readonly string[];
  readonly base: Footprint;
};

export type Footprint = {
  readonly files: number;
  readonly sockets: number;
  readonly rssBytes: number;
};

const MEBIBYTE = 1024 * 1024;
const ENDS = new Set(['execution_success', 'execution_error', 'execution_interrupted']);

/** All of them; nothing may be on its way any more. */
export async function checkAll(run: Run): Promise<void> {
  await acceptedIsKept(run);
  oneJobPerPrompt(run);
  const histories = await historiesOf(run);
  await onePromptOneEnd(run, histories);
  noSuccessWithoutOne(run, histories);
  memoryIsBounded(run);
  usersAreApart(run);
  refusalsAreDiscreet(run);
  await nothingIsLeft(run);
  await serviceIsBack(run);
  framesAreInOrder(run);
}

/** I1: whatever was answered with 200 is known to the process that runs now. */
export async function acceptedIsKept(run: Run): Promise<void> {
  for (const { account, promptId, marker } of accepted(run)) {
    const { status } = await ask(
      run,
      account,
      `/api/job/${encodeURIComponent(promptId ?? '')}/status`,
    );
    expect([marker, 'is known', status]).toEqual([marker, 'is known', 200]);
  }
}

/**
 * I2: at most one job, and one key, for each `POST /prompt`; jobs the service has lost before they
 * began do not count, and the keys made for what took their place are the same.
 */
export function oneJobPerPrompt({ upstream, posts }: Pick<Run, 'upstream' | 'posts'>): void {
  const submits = groupBy(upstream.requests('submit'), markerOf);
  const kept = [...upstream.jobs.values()].filter(({ status }) => status !== 'expired');
  const jobsByMarker = groupBy(kept, ({ workflow }) => prefixOf(workflow));
  for (const { marker } of posts) {
    const jobs = jobsByMarker.get(marker) ?? [];
    expect([marker, 'has jobs', jobs.map(({ id }) => id).slice(1)]).toEqual([
      marker,
      'has jobs',
      [],
    ]);
    const keys = new Set(submits.get(marker)?.map(rootOf));
    expect([marker, 'used keys', [...keys].slice(1)]).toEqual([marker, 'used keys', []]);
  }
  const used = [...upstream.jobs.values()].flatMap(({ key }) => (key === undefined ? [] : [key]));
  expect(used.length, 'jobs and the keys they were made with').toBe(new Set(used).size);
}

function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): ReadonlyMap<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const key = keyOf(one);
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return groups;
}

/** I3: each accepted prompt ended once, in history and on every socket that was there all along. */
export async function onePromptOneEnd(run: Run, histories: Histories): Promise<void> {
  for (const { account, promptId = '', marker } of accepted(run)) {
    const entry = histories.get(account)?.[promptId];
    expect([marker, 'ended', entry !== undefined]).toEqual([marker, 'ended', true]);
    for (const { frames, ...socket } of run.sockets) {
      if (socket.account !== account || !socket.isWhole()) continue;
      const ends = typesOf(frames, promptId).filter((type) => ENDS.has(type));
      // Frames that no socket received go with the process when it is killed: history has the result.
      const endWasMissed = run.oldLogs.length > 0 && endedAtMs(entry) < socket.openedAtMs;
      if (endWasMissed && ends.length === 0) continue;
      expect([marker, 'ends heard', ends.length]).toEqual([marker, 'ends heard', 1]);
    }
  }
  for (const account of new Set(run.posts.map((post) => post.account))) {
    const { json } = await ask(run, account, '/queue');
    const left = [...json.queue_running, ...json.queue_pending].map(([, id]: string[]) => id);
    expect(left, 'left in /queue').toEqual([]);
  }
}

function endedAtMs(entry: any): number {
  return entry?.status?.messages?.at(-1)?.[1]?.timestamp ?? Number.POSITIVE_INFINITY;
}

/** I4: a success in v1 is a success in v2. */
export function noSuccessWithoutOne(run: Run, histories: Histories): void {
  const jobs = groupBy([...run.upstream.jobs.values()], ({ workflow }) => prefixOf(workflow));
  for (const { account, promptId = '', marker } of accepted(run)) {
    const entry = histories.get(account)?.[promptId];
    if (entry?.status.status_str !== 'success') continue;
    expect([marker, jobs.get(marker)?.[0]?.status]).toEqual([marker, 'succeeded']);
  }
}

/** I5: the process is not much larger than it was, whatever it had to swallow. */
export function memoryIsBounded({ holdover, base }: Pick<Run, 'holdover' | 'base'>): void {
  const grownBytes = footprint(holdover()).rssBytes - base.rssBytes;
  expect(grownBytes, 'bytes more than before').toBeLessThan(128 * MEBIBYTE);
}

/** I6: nothing one user was told names a prompt of another. */
export function usersAreApart({ posts, answers, sockets }: Run): void {
  const told = [
    ...answers.map(({ account, text, what }) => ({ account, text, what })),
    ...sockets.map(({ account, frames }) => ({ account, text: textOf(frames), what: 'frames' })),
  ];
  for (const { account, text, what } of told) {
    const foreign = posts.filter((post) => post.account !== account && text.includes(post.marker));
    expect([account, what, foreign.map(({ marker }) => marker)]).toEqual([account, what, []]);
  }
}

/** I7: errors are v1's, and neither they nor logs nor files tell keys, addresses or insides. */
export function refusalsAreDiscreet(run: Run): void {
  const { answers, keys, upstream, holdover } = run;
  const secrets = [...keys, upstream.origin, new URL(upstream.origin).host];
  for (const { what, status, text } of answers) {
    const where = `${status} to ${what}`;
    const told = secrets.filter((secret) => text.includes(secret));
    expect([where, told]).toEqual([where, []]);
    if (status < 400) continue;
    expect([where, text]).not.toEqual([
      where,
      expect.stringMatching(/<html|\bat \S+ \(|\.[jt]s:\d|\/(dist|src|node_modules)\//),
    ]);
    expect([where, isV1Error(what, text)]).toEqual([where, true]);
  }
  const log = [...run.oldLogs, holdover().log()].join('');
  expect(log).not.toMatch(/uncaught|unhandled/i);
  for (const key of keys) expect(log.includes(key), 'a key in the log').toBe(false);
  expect(filesWith(holdover().dataDir, ...keys), 'files with a key').toEqual([]);
}

/** I8: no file, no descriptor and no connection is left of what is over. */
export async function nothingIsLeft({ holdover, base, sockets }: Run): Promise<void> {
  const spool = join(holdover().dataDir, 'spool');
  const left = () => leftInSpool(spool);
  await expect.poll(left, { timeout: 5_000, message: 'spool' }).toEqual([]);
  const files = () => footprint(holdover()).files - base.files;
  await expect.poll(files, { timeout: 5_000, message: 'open files' }).toBeLessThanOrEqual(2);
  const open = () => footprint(holdover()).sockets - base.sockets - sockets.length;
  await expect
    .poll(open, { timeout: 10_000, interval: 100, message: 'connections' })
    .toBeLessThanOrEqual(64);
}

/** With a ledger in Redis each process has a folder of its own there, and one that is killed leaves it. */
function leftInSpool(spool: string): readonly string[] {
  const entries = readdirSync(spool, {
    withFileTypes: true,
    recursive: testedUpstream() === 'stack',
  });
  const isProcessFolder = (entry: Dirent) =>
    testedUpstream() === 'stack' && entry.isDirectory() && entry.parentPath === spool;
  return entries.filter((entry) => !isProcessFolder(entry)).map(({ name }) => name);
}

/** I9: it serves. */
export async function serviceIsBack({ holdover }: Pick<Run, 'holdover'>): Promise<void> {
  const response = await fetch(`${holdover().url}/healthz`);
  await response.arrayBuffer();
  expect(response.status).toBe(200);
}

/** I10: on each socket a prompt starts once, ends once, and nothing follows; its history is there by then. */
export function framesAreInOrder({ sockets }: Pick<Run, 'sockets'>): void {
  for (const { frames, early } of sockets) {
    const ids = new Set(frames.flatMap((frame) => idOf(frame) ?? []));
    for (const id of ids) {
      const types = typesOf(frames, id);
      const last = types.indexOf('executing null');
      const told = `${id}: ${types.join(' ')}`;
      const once = (type: string) => types.filter((one) => one === type).length;
      expect([told, 'starts', once('execution_start')]).toEqual([
        told,
        'starts',
        Math.min(1, once('execution_start')),
      ]);
      if (once('execution_start') === 1)
        expect(told).toBe(`${id}: execution_start${told.slice(`${id}: execution_start`.length)}`);
      if (last < 0) continue;
      expect([told, 'after the end', types.slice(last + 1)]).toEqual([told, 'after the end', []]);
      const ends = types.filter((type) => ENDS.has(type)).length;
      expect([told, 'ends', ends]).toEqual([told, 'ends', 1]);
      expect([told, 'the end is', ENDS.has(types.at(-2) ?? '')]).toEqual([
        told,
        'the end is',
        true,
      ]);
    }
    expect(early, 'ended on the socket before history knew').toEqual([]);
  }
}

/** Descriptors and memory of a process as they are now. */
export function footprint({ pid }: Pick<Holdover, 'pid'>): Footprint {
  const targets = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const sockets = targets.filter((target) => target.startsWith('socket:')).length;
  const rssKilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return { files: targets.length - sockets, sockets, rssBytes: Number(rssKilobytes) * 1024 };
}

/** Jobs that came of one prompt. */
export function jobsOf(upstream: HostileV2, marker: string): readonly WireJob[] {
  return [...upstream.jobs.values()].filter(({ workflow }) => prefixOf(workflow) === marker);
}

export function keyOf({ headers }: Recorded): string {
  return String(headers['idempotency-key']);
}

/** After a certain refusal a prompt may be sent once more, changed, under a key made of its first. */
function rootOf(sent: Recorded): string {
  return keyOf(sent).replace(/\.\w+$/, '');
}

export function markerOf({ body }: Recorded): string {
  return prefixOf((JSON.parse(body.toString()) as { workflow: unknown }).workflow);
}

function accepted({ posts }: Run): readonly PromptRecord[] {
  return posts.filter(({ status, promptId }) => status === 200 && promptId !== undefined);
}

async function ask(
  run: Run,
  account: string,
  path: string,
): Promise<{ status: number; json: any }> {
  const headers: Record<string, string> = account === '' ? {} : { 'X-API-Key': account };
  const response = await fetch(`${run.holdover().url}${path}`, { headers });
  const text = await response.text();
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
}

/** `GET /history` of each account that posted prompts. */
type Histories = ReadonlyMap<string, any>;

async function historiesOf(run: Run): Promise<Histories> {
  const histories = new Map<string, any>();
  for (const { account } of accepted(run)) {
    if (!histories.has(account)) histories.set(account, (await ask(run, account, '/history')).json);
  }
  return histories;
}

function typesOf(frames: readonly Received[], promptId: string): readonly string[] {
  return frames.flatMap((frame) => {
    if (frame.kind !== 'text' || frame.data.prompt_id !== promptId) return [];
    return frame.type === 'executing' && frame.data.node === null ? 'executing null' : frame.type;
  });
}

function idOf(frame: Received): string | undefined {
  return frame.kind === 'text' ? frame.data.prompt_id : undefined;
}

function textOf(frames: readonly Received[]): string {
  return frames.map((frame) => (frame.kind === 'text' ? frame.text : '')).join('\n');
}

/** `POST /prompt` has its own form; bare answers of the original stay bare. */
function isV1Error(what: string, text: string): boolean {
  if (text === '' || !text.startsWith('{')) return !what.includes('/prompt');
  const body = JSON.parse(text) as Record<string, any>;
  if (what.includes('/prompt'))
    return typeof body['error']?.type === 'string' && 'node_errors' in body;
  return 'error' in body || 'code' in body;
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return 'gone';
  }
}
