import { setTimeout as delay } from 'node:timers/promises';
import { pngText } from '../support/clients/client-helpers.ts';
import type { Recorder } from '../support/clients/v1-client.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import type { Caller } from './callers.ts';
import { type ClientGroup, type Socket, endOfJob, frameFrom, isEnd } from './client-group.ts';
import { type GroupJob, DOCUMENTED_EXCEPTIONS, type Kind, endOf } from './frame-rules.ts';

// Programs of the crowd. Each waits as its kind of client waits, and throws when that fails it.

const POLL_MS = 250;

/** Polls the history as most scripts do, and looks at the result. */
export async function poll(group: ClientGroup, caller: Caller, kind: Kind): Promise<GroupJob> {
  const job = await group.post(caller, kind);
  await untilResult(group, caller, job);
  return job;
}

/** Connects, then submits prompt after prompt and takes the first `executing` with node null for its end. */
export async function listen(
  group: ClientGroup,
  caller: Caller,
  options: { name: string; kinds: readonly Kind[]; negotiates?: boolean },
): Promise<Socket> {
  const { name, kinds, negotiates = false } = options;
  const socket = await group.join(name, caller, { negotiates });
  for (const kind of kinds) {
    const heard = socket.recorder.frames.length;
    const job = await group.post(caller, kind, { clientId: name });
    // Hosted ones are told of every prompt of their user, and know it.
    if (caller.form === 'hosted') await endOfJob(socket.recorder, job.promptId);
    else await untilFirstEnd(socket.recorder, heard);
    // Scripts index the history with their id at once.
    await checkResult(group, caller, job);
  }
  return socket;
}

/** Interrupts its own prompt once it runs. */
export async function cancel(group: ClientGroup, caller: Caller, clientId?: string): Promise<void> {
  if (clientId !== undefined) await group.join(clientId, caller);
  const job = await group.post(caller, 'cancelled', clientId === undefined ? {} : { clientId });
  await untilRunning(group, caller, job);
  await group.send(caller, '/interrupt', { prompt_id: job.promptId });
  await untilResult(group, caller, job);
}

/** Takes a prompt back that waits behind another one of its own. */
export async function takeBack(
  group: ClientGroup,
  caller: Caller,
  clientId?: string,
): Promise<void> {
  const options = clientId === undefined ? {} : { clientId };
  if (clientId !== undefined) await group.join(clientId, caller);
  // There must be room for both before the first one blocks the queue.
  const draft = await group.draft('unstarted');
  const blocker = await group.post(caller, 'cancelled', options);
  const job = await group.post(caller, 'unstarted', { ...options, draft });
  await untilRunning(group, caller, blocker);
  await group.send(caller, '/queue', { delete: [job.promptId] });
  await untilResult(group, caller, job);
  await group.send(caller, '/interrupt', { prompt_id: blocker.promptId });
  await untilResult(group, caller, blocker);
}

/** A program on the v2 API at the same address. */
export async function useV2(group: ClientGroup, caller: Caller, kind: Kind): Promise<void> {
  await group.watch(caller);
  const { graph, note, giveUp } = await group.draft(kind);
  const v2 = v2Client(group.holdover.url, { ...caller.headers });
  const { status, body } = await v2.submit(graph);
  if (status !== 201) {
    giveUp();
    throw new Error(`${status}: ${JSON.stringify(body)}`);
  }
  await note(caller, { promptId: body.id, clientId: null });
  // A service may have no stream to spare.
  const events = await v2.events(body.id);
  if (events === '429') await until(async () => isTerminal((await v2.job(body.id)).body.status));
  const wanted = endOf({ kind }) === 'execution_error' ? 'failed' : 'succeeded';
  const ended = (await v2.job(body.id)).body.status;
  mustEqual(ended, wanted, `the end of v2 job ${body.id}`);
}

const isTerminal = (status: string): boolean => ['succeeded', 'failed'].includes(status);

/** Two programs with one fixed id in turn; the second also finds a prompt whose result is fetched. */
export async function reuseId(group: ClientGroup, caller: Caller, clientId: string): Promise<void> {
  const first = await group.join(`${clientId}, first`, caller, { clientId });
  const own = await group.post(caller, 'grown', { clientId });
  await endOfJob(first.recorder, own.promptId);
  await group.leave(first);
  const unseen = await group.post(caller, 'sized', { clientId });
  await untilResult(group, caller, unseen);
  const second = await group.join(`${clientId}, second`, caller, { clientId });
  const next = await group.post(caller, 'failed', { clientId });
  await untilFirstEnd(second.recorder, 0);
  mustBeSilent(second, [own, unseen]);
  await checkResult(group, caller, next);
}

/** Submits under an id of its own and connects later. */
export async function comeLate(
  group: ClientGroup,
  caller: Caller,
  options: { clientId: string; when: 'at once' | 'after the end' | 'after the fetch'; kind?: Kind },
): Promise<void> {
  const { clientId, when, kind = 'grown' } = options;
  const job = await group.post(caller, kind, { clientId });
  if (when === 'after the end') await untilOver(group, caller, job);
  if (when === 'after the fetch') await untilResult(group, caller, job);
  const isFetched = when === 'after the fetch';
  const late = isFetched ? 'from now on' : 'all of its own id';
  const socket = await group.join(clientId, caller, { late });
  if (isFetched) return mustBeSilent(socket, [job]);
  await endOfJob(socket.recorder, job.promptId);
  await checkResult(group, caller, job);
}

/** Opens a socket after a prompt without a client id has ended: it is none of its business. */
export async function comeAfterStranger(
  group: ClientGroup,
  caller: Caller,
  name: string,
): Promise<void> {
  const job = await group.post(caller, 'failed');
  await untilOver(group, caller, job);
  const socket = await group.join(name, caller);
  const own = await group.post(caller, 'sized', { clientId: name });
  await untilFirstEnd(socket.recorder, 0);
  mustBeSilent(socket, [job]);
  await checkResult(group, caller, own);
}

/** A sample of the hosted documentation: submits without an id, connects, waits for the success. */
export async function followSample(
  group: ClientGroup,
  caller: Caller,
  options: { name: string; when: 'at once' | 'after the end' | 'after another' },
): Promise<void> {
  const { name, when } = options;
  const { last, earlier } = await submitSample(group, caller, when);
  if (when !== 'at once') await untilOver(group, caller, last);
  const socket = await group.join(name, caller, { late: 'all of the last job' });
  await frameFrom(
    socket.recorder,
    0,
    (frame) =>
      frame.kind === 'text' &&
      frame.type === 'execution_success' &&
      frame.data.prompt_id === last.promptId,
  );
  await endOfJob(socket.recorder, last.promptId);
  await checkResult(group, caller, last);
  mustBeSilent(socket, earlier);
}

/** The same sample when it polled for the status instead: there is nothing left to be told. */
export async function pollStatusFirst(
  group: ClientGroup,
  caller: Caller,
  name: string,
): Promise<void> {
  const job = await group.post(caller, 'grown');
  await until(async () => {
    const answer = await group.get(caller, `/job/${job.promptId}/status`);
    return ((await answer.json()) as { status: string }).status === 'success';
  });
  mustBeSilent(await group.join(name, caller), [job]);
}

async function submitSample(
  group: ClientGroup,
  caller: Caller,
  when: string,
): Promise<{ readonly last: GroupJob; readonly earlier: readonly GroupJob[] }> {
  const earlier = when === 'after another' ? [await group.post(caller, 'sized')] : [];
  return { earlier, last: await group.post(caller, 'grown') };
}

/** The client stops at the first `executing` with node null it receives, of any prompt. */
async function untilFirstEnd(recorder: Recorder, from: number): Promise<void> {
  await frameFrom(recorder, from, isEnd);
}

function mustBeSilent({ name, recorder }: Socket, jobs: readonly GroupJob[]): void {
  const heard = jobs.flatMap(({ promptId }) =>
    recorder.frames.filter((frame) => frame.kind === 'text' && frame.data.prompt_id === promptId),
  );
  if (heard.length > 0)
    throw new Error(`${name} hears of a prompt that is over: ${recorder.outline().join(' ')}`);
}

async function untilRunning(group: ClientGroup, caller: Caller, job: GroupJob): Promise<void> {
  await until(async () => {
    const status = await fetch(`${group.holdover.url}/api/job/${job.promptId}/status`, {
      headers: caller.headers,
    });
    return ((await status.json()) as { status: string }).status === 'executing';
  });
}

/** As n8n waits: until the id has gone from the queue. */
async function untilOver(
  group: ClientGroup,
  caller: Caller,
  { promptId }: GroupJob,
): Promise<void> {
  await until(async () => {
    const queue = await (await group.get(caller, '/queue')).text();
    return !queue.includes(promptId);
  });
}

async function untilResult(group: ClientGroup, caller: Caller, job: GroupJob): Promise<void> {
  await until(async () => (await historyOf(group, caller, job)) !== undefined);
  await checkResult(group, caller, job);
}

async function historyOf(group: ClientGroup, caller: Caller, { promptId }: GroupJob): Promise<any> {
  const answer = await group.get(caller, `/history/${promptId}`);
  return ((await answer.json()) as Record<string, any>)[promptId];
}

/** That its entry is there, ended as it should, and its result is its own. */
export async function checkResult(
  group: ClientGroup,
  caller: Caller,
  job: GroupJob,
): Promise<void> {
  const entry = await historyOf(group, caller, job);
  if (!entry) throw new Error(`no history of ${job.kind} ${job.number} when its client looked`);
  const [type, data] = entry.status.messages.at(-1);
  mustEqual(type, endOf(job), `end of ${job.kind} ${job.number}`);
  if (job.kind === 'failed') checkException(caller, data.exception_type);
  const shown = entry.outputs['3']?.text;
  // v2 carries no texts but between Holdovers.
  if (shown) mustEqual(shown[0], String(job.size), 'text');
  if (job.kind === 'grown') await checkPicture(group, caller, { job, entry });
}

function checkException(caller: Caller, type: string): void {
  const isDocumented = DOCUMENTED_EXCEPTIONS.includes(type);
  mustEqual(isDocumented, caller.form === 'hosted', `${type} for a ${caller.form} caller`);
}

async function checkPicture(
  group: ClientGroup,
  caller: Caller,
  { job, entry }: { job: GroupJob; entry: any },
): Promise<void> {
  const [file] = entry.outputs['9'].images;
  mustEqual(file.filename, `crowd-${job.number}_00001_.png`, 'file name');
  const answer = await group.get(caller, `/view?${new URLSearchParams(file).toString()}`);
  const isHosted = caller.form === 'hosted';
  mustEqual(answer.status, isHosted ? 302 : 200, `status of /view for a ${caller.form} caller`);
  const location = answer.headers.get('Location') ?? '';
  // The key must not go where the link leads.
  const picture = isHosted ? await fetch(new URL(location, group.holdover.url)) : answer;
  const text = pngText(Buffer.from(await picture.arrayBuffer()), 'prompt') ?? '';
  mustEqual(/"seed": (\d+)/.exec(text)?.[1], String(7_000 + job.number), 'seed in the picture');
}

function mustEqual(got: unknown, wanted: unknown, subject: string): void {
  if (got !== wanted) throw new Error(`${subject}: ${String(got)}, not ${String(wanted)}`);
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error('it never came');
    await delay(POLL_MS);
  }
}
