import { once } from 'node:events';
import type { Holdover } from '../support/processes/holdover.ts';
import { type Received, type Recorder, connect } from '../support/clients/v1-client.ts';
import { endless, flat, growing, loading, streaming } from '../support/graphs/workflows.ts';
import type { Caller } from './callers.ts';
import type { GroupJob, Kind } from './frame-rules.ts';

/** The frames a socket receives of a job that began, or was over, before it connected. */
export type LateDelivery =
  /** It receives the frames sent while it is connected, and none from before. */
  | 'from now on'
  /** All of it: the job is of its client id, and no socket of that id received it. */
  | 'all of its own id'
  /** All of the user's last job, which no socket received. */
  | 'all of the last job';

export type Socket = {
  readonly name: string;
  readonly caller: Caller;
  readonly clientId: string;
  readonly recorder: Recorder;
  readonly negotiated: boolean;
  readonly openedAtMs: number;
  readonly late: LateDelivery;
  /** Jobs submitted after it was closed are none of its business. */
  closedAt: number;
};

export type ClientGroup = {
  readonly holdover: Holdover;
  readonly jobs: GroupJob[];
  readonly sockets: Socket[];
  /** Opens a socket that is compared at the end. */
  join(
    name: string,
    caller: Caller,
    options?: { clientId?: string; negotiates?: boolean; late?: LateDelivery },
  ): Promise<Socket>;
  /** `POST /prompt` of a job of that kind. */
  post(caller: Caller, kind: Kind, options?: PostOptions): Promise<GroupJob>;
  /** The body of a job, for callers with an API of their own, and its entry among the jobs. */
  readonly draft: (kind: Kind) => Promise<Draft>;
  get(caller: Caller, path: string): Promise<Response>;
  send(caller: Caller, path: string, body?: object): Promise<Response>;
  /** Leaves, with its frames kept. */
  leave(socket: Socket): Promise<void>;
  /** Waits until each job has been told to its end, and each open socket has all it was sent. */
  settle(): Promise<void>;
  /** Opens what Holdover's own page is shown, every frame of every job of that user, once. */
  readonly watch: (caller: Caller) => Promise<Recorder>;
  watched(user: string): Promise<Recorder>;
  close(): Promise<void>;
};

export type PostOptions = {
  readonly clientId?: string;
  readonly asksForPreviews?: boolean;
  /** Made before. */
  readonly draft?: Draft;
};

/** A job that is about to be submitted. */
export type Draft = {
  readonly graph: object;
  /** It was refused. */
  readonly giveUp: () => void;
  readonly note: (
    caller: Caller,
    job: Pick<GroupJob, 'promptId' | 'clientId'> & Partial<GroupJob>,
  ) => Promise<GroupJob>;
};

export const CORRUPT = 'corrupt.png';

/** `mostLiveJobs`: others wait before they are submitted. */
export function createClientGroup(holdover: Holdover, mostLiveJobs = Infinity): ClientGroup {
  const jobs: GroupJob[] = [];
  const sockets: Socket[] = [];
  const watchers = new Map<string, Promise<Recorder>>();
  const ended = new Map<string, Promise<void>>();
  const live = { count: 0, waiting: [] as (() => void)[] };
  let made = 0;

  async function draft(kind: Kind): Promise<Draft> {
    if (live.count >= mostLiveJobs) {
      await new Promise<void>((resolve) => void live.waiting.push(resolve));
    } else live.count++;
    const number = ++made;
    const size = kind === 'grown' ? 4 + (number % 5) : 16 + number;
    const postedAtMs = performance.now();
    return {
      graph: graphOf(kind, number, size),
      async note(caller, job) {
        const { user } = caller;
        const noted = { kind, number, size, postedAtMs, asksForPreviews: false, user, ...job };
        jobs.push(noted);
        ended.set(job.promptId, endOfJob(await watch(caller), job.promptId).then(leaveSpace));
        return noted;
      },
      giveUp: leaveSpace,
    };
  }

  /** To the next one that waits, if there is one. */
  function leaveSpace(): void {
    const next = live.waiting.shift();
    if (next) next();
    else live.count--;
  }

  function watch(caller: Caller): Promise<Recorder> {
    const { user, socketQuery, socketHeaders } = caller;
    const watching =
      watchers.get(user) ??
      connect(holdover.wsUrl, {
        clientId: null,
        headers: socketHeaders,
        query: ['watch=1', socketQuery].filter(Boolean).join('&'),
      });
    watchers.set(user, watching);
    return watching;
  }

  return {
    holdover,
    jobs,
    sockets,
    draft,
    watch,
    async join(name, caller, { clientId = name, negotiates = false, late = 'from now on' } = {}) {
      await watch(caller);
      const { socketHeaders: headers, socketQuery: query } = caller;
      const recorder = await connect(holdover.wsUrl, { clientId, headers, query });
      const opened = { openedAtMs: performance.now(), closedAt: Infinity };
      const socket = { name, caller, clientId, recorder, negotiated: negotiates, late, ...opened };
      sockets.push(socket);
      if (negotiates) {
        recorder.send({ type: 'feature_flags', data: { supports_preview_metadata: true } });
        await frameFrom(recorder, 0, (one) => one.kind === 'text' && one.type === 'feature_flags');
      }
      return socket;
    },
    async post(caller, kind, { clientId, asksForPreviews = false, draft: given } = {}) {
      await watch(caller);
      const { graph, note, giveUp } = given ?? (await draft(kind));
      const answer = await this.send(caller, '/prompt', {
        prompt: graph,
        ...(clientId !== undefined && { client_id: clientId }),
        ...(asksForPreviews && { extra_data: { preview_method: 'latent2rgb' } }),
      });
      const told = (await answer.json()) as { prompt_id: string };
      if (answer.status !== 200) {
        giveUp();
        throw new Error(`${answer.status}: ${JSON.stringify(told)}`);
      }
      const promptId = told.prompt_id;
      return note(caller, { promptId, clientId: clientId ?? null, asksForPreviews });
    },
    get: (caller, path) =>
      fetch(`${holdover.url}${caller.prefix}${path}`, {
        headers: caller.headers,
        redirect: 'manual',
      }),
    send: (caller, path, body) =>
      fetch(`${holdover.url}${caller.prefix}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...caller.headers },
        ...(body && { body: JSON.stringify(body) }),
      }),
    async leave(socket) {
      await pong(socket.recorder);
      await socket.recorder.close();
      socket.closedAt = jobs.length;
    },
    watched: (user) => watchers.get(user) ?? Promise.reject(new Error(`no watcher of ${user}`)),
    async settle() {
      await Promise.all(ended.values());
      const open = sockets.filter(({ closedAt }) => closedAt === Infinity);
      await Promise.all(open.map(({ recorder }) => pong(recorder)));
    },
    async close() {
      const recorders = sockets.map(({ recorder }) => recorder);
      for (const recorder of [...recorders, ...(await Promise.all(watchers.values()))]) {
        recorder.socket.terminate();
      }
    },
  };
}

/** True when the submission of the job began before the socket connected. */
export function cameAfter(socket: Socket, job: GroupJob): boolean {
  return job.postedAtMs < socket.openedAtMs;
}

/** Resolves with the first frame from that place on which satisfies the test, and its place. */
export function frameFrom(
  { frames, socket }: Recorder,
  from: number,
  test: (frame: Received) => boolean,
): Promise<number> {
  // One for each prompt whose end is awaited.
  socket.setMaxListeners(0);
  return new Promise((resolve) => {
    let at = from;
    const look = (): void => {
      while (at < frames.length && !test(frames[at]!)) at++;
      if (at >= frames.length) return;
      socket.off('message', look);
      resolve(at);
    };
    socket.on('message', look);
    look();
  });
}

/** Waits for v1's end of a prompt. */
export async function endOfJob(recorder: Recorder, promptId: string): Promise<void> {
  await frameFrom(recorder, 0, (frame) => isEnd(frame) && frame.data.prompt_id === promptId);
}

/** v1's end of some prompt: `executing` with node null. */
export function isEnd(frame: Received): frame is Received & { kind: 'text' } {
  return frame.kind === 'text' && frame.type === 'executing' && frame.data.node === null;
}

/** The answer to a ping comes after everything that was sent before. */
async function pong({ socket }: Recorder): Promise<void> {
  const answered = once(socket, 'pong');
  socket.ping();
  await answered;
}

function graphOf(kind: Kind, number: number, size: number): object {
  const prefix = `crowd-${number}`;
  switch (kind) {
    case 'grown':
      return growing({ seed: 7_000 + number, steps: size, prefix });
    case 'failed':
      return loading(CORRUPT, prefix);
    case 'misnamed':
      return flat({ color: number, prefix: '../../crowd' });
    case 'cancelled':
    case 'unstarted':
      return endless({ seed: 7_000 + number });
    case 'streamed': {
      const { '1': made, '5': sent } = streaming('5') as Record<string, any>;
      return { '1': { ...made, inputs: { ...made.inputs, width: size } }, '5': sent };
    }
    case 'sized': {
      const inputs = { width: size, height: 16, batch_size: 1, color: number };
      return {
        '1': { class_type: 'EmptyImage', inputs },
        '2': { class_type: 'GetImageSize', inputs: { image: ['1', 0] } },
        '3': { class_type: 'PreviewAny', inputs: { source: ['2', 0] } },
      };
    }
  }
}

/** `type`, with the node or the step where there is one; `undefined`: it is of no prompt. */
export function nameOf(frame: Received): string | undefined {
  if (frame.kind === 'binary' || frame.data.prompt_id === undefined) return undefined;
  const { node, value, max } = frame.data;
  if (frame.type === 'progress') return `progress:${value}/${max}`;
  return frame.type.startsWith('execut') && node !== undefined
    ? `${frame.type}:${node}`
    : frame.type;
}
