import type { Received } from '../support/clients/v1-client.ts';
import { type ClientGroup, type Socket, cameAfter, isEnd, nameOf } from './client-group.ts';
import { type GroupJob, DOCUMENTED_EXCEPTIONS, isShared, deliveryOf } from './frame-rules.ts';

/**
 * A JSON frame of a prompt as it is compared: the exception's word, the newline after its message and the classes of
 * nodes are the dialect's own.
 */
type Line = { readonly name: string; readonly text: string };

/** JSON frames of one job, in order. */
export function linesOf(frames: readonly Received[], { promptId }: GroupJob): Line[] {
  return frames.flatMap((frame) => {
    const name = nameOf(frame);
    if (name === undefined || frame.kind !== 'text' || frame.data.prompt_id !== promptId) return [];
    const { exception_type: _, ...data } = frame.data;
    const text = JSON.stringify([frame.type, data], (member, value) => {
      if (frame.type === 'progress_state' && member === 'class_type') return undefined;
      return member === 'exception_message' ? value.replace(/\n$/, '') : value;
    });
    return [{ name, text }];
  });
}

const namesOf = (lines: readonly Line[]): string =>
  lines.map(({ name }) => name).join(' ') || 'nothing';

/** Describes each socket whose frames of a job differ from those its own server would have sent. */
export async function unexpectedFrames(group: ClientGroup): Promise<string[]> {
  const faults: string[] = [];
  for (const [at, job] of group.jobs.entries()) {
    const whole = linesOf((await group.watched(job.user)).frames, job);
    for (const socket of group.sockets) {
      const got = linesOf(socket.recorder.frames, job);
      const share = deliveryOf(socket, job);
      const wanted = whole.filter(({ name }) => isShared(share, name.split(':', 1)[0] ?? '', job));
      if (isExpected({ group, socket, job, at }, got, wanted)) continue;
      const whose = job.clientId === null ? 'without an id' : `of ${job.clientId}`;
      faults.push(
        `${socket.name} (${socket.caller.form}) of ${job.kind} ${job.number} ${whose}: ${namesOf(got)}, not ${namesOf(wanted)}`,
      );
    }
  }
  return faults;
}

type Case = {
  readonly group: ClientGroup;
  readonly socket: Socket;
  readonly job: GroupJob;
  readonly at: number;
};

function isExpected(
  { group, socket, job, at }: Case,
  got: readonly Line[],
  wanted: readonly Line[],
): boolean {
  const [heard, all] = [got, wanted].map((lines) => lines.map(({ text }) => text).join('\n')) as [
    string,
    string,
  ];
  const isOwn = job.clientId === socket.clientId;
  const isCutOff = at >= socket.closedAt || (socket.closedAt < Infinity && !isOwn);
  if (isCutOff) return cameAfter(socket, job) ? all.includes(heard) : all.startsWith(heard);
  if (heard === all) return true;
  return cameAfter(socket, job) && !isHandedOver(group, socket, job) && all.endsWith(heard);
}

/** True when a socket that connected after the submission of a job receives all of the job. */
function isHandedOver({ jobs }: ClientGroup, socket: Socket, job: GroupJob): boolean {
  const { late, clientId, caller } = socket;
  if (late === 'all of its own id') return job.clientId === clientId;
  if (late === 'from now on') return false;
  const last = jobs.findLast((one) => one.user === caller.user && cameAfter(socket, one));
  return job === last;
}

/** The watcher's own sequence of each job, where it is not the one of the original. */
export async function wrongOrder(
  group: ClientGroup,
  outlineOf: (job: GroupJob) => RegExp,
): Promise<string[]> {
  const faults: string[] = [];
  for (const job of group.jobs) {
    const names = namesOf(linesOf((await group.watched(job.user)).frames, job));
    if (!outlineOf(job).test(names)) faults.push(`${job.kind} ${job.number}: ${names}`);
  }
  return faults;
}

/** Local sockets whose first `executing` with node null is not of a prompt of their own. */
export function wrongWatcherFrames({ sockets, jobs }: ClientGroup): string[] {
  const local = sockets.filter(({ caller }) => caller.form === 'local');
  return local.flatMap(({ name, clientId, recorder }) => {
    const end = recorder.frames.find(isEnd);
    const owner = end && jobs.find(({ promptId }) => promptId === end.data.prompt_id);
    return !end || (owner && owner.clientId === clientId) ? [] : [name];
  });
}

/** Sockets whose messages are not their server's: its counts, its exceptions, its notifications. */
export function unlike({ sockets, jobs }: ClientGroup): string[] {
  return sockets.flatMap(({ name, caller, clientId, recorder, closedAt }) => {
    const texts = recorder.frames.flatMap((frame) => (frame.kind === 'text' ? [frame] : []));
    const counts = texts.flatMap(({ type, data }) =>
      type === 'status' ? [data.status.exec_info.queue_remaining as number] : [],
    );
    const most = jobs.filter(({ user }) => user === caller.user).length;
    const sids = texts.flatMap(({ data }) => (data.sid === undefined ? [] : [data.sid]));
    const isHosted = caller.form === 'hosted';
    const errors = texts.flatMap(({ type, data }) => (type === 'execution_error' ? [data] : []));
    const classes = texts.flatMap(({ type, data }) =>
      type === 'progress_state'
        ? Object.values(data.nodes).map((node) => Object.hasOwn(node as object, 'class_type'))
        : [],
    );
    const faults = {
      'its first message is not its status': texts[0]?.data.sid !== clientId || sids.length !== 1,
      'it is told of more prompts than its user has': Math.max(...counts) > most,
      'its last status does not say 0': closedAt === Infinity && counts.at(-1) !== 0,
      'a word for an exception is not its server’s': errors.some(
        (data) => DOCUMENTED_EXCEPTIONS.includes(data.exception_type) !== isHosted,
      ),
      'an exception’s message ends in a newline, or not, unlike by its server': errors.some(
        (data) => data.exception_message.endsWith('\n') === isHosted,
      ),
      'it is told the classes of nodes, or not, unlike by its server': classes.some(
        (one) => one !== isHosted,
      ),
      'it is notified': !isHosted && texts.some(({ type }) => type === 'notification'),
    };
    return Object.entries(faults).flatMap(([fault, isSo]) => (isSo ? [`${name}: ${fault}`] : []));
  });
}
