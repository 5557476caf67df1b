import type { Caller } from './callers.ts';

// The table of the two v1 servers, written down a second time: nothing of `src` is imported.

/** How a job of the crowd ends, and what it is made of. */
export type Kind =
  | 'grown'
  | 'sized'
  | 'streamed'
  /** By an input that is no picture. */
  | 'failed'
  /** By a file name that leaves the folder. */
  | 'misnamed'
  | 'cancelled'
  | 'unstarted';

export type GroupJob = {
  readonly promptId: string;
  /** When its submission began, by the clock of the process. */
  readonly postedAtMs: number;
  readonly user: string;
  /** Absent for a v2 job and for a prompt that named none. */
  readonly clientId: string | null;
  readonly kind: Kind;
  /** No other job of the crowd has it. */
  readonly number: number;
  /** Steps of a grown one; width of a sized or streamed one, which no other job has. */
  readonly size: number;
  /** True when the prompt itself asked for previews. */
  readonly asksForPreviews: boolean;
};

export type Delivery = 'everything' | 'broadcasts' | 'nothing';

/** The frames that a connected socket receives of a job. */
export function deliveryOf(
  socket: { readonly caller: Caller; readonly clientId: string },
  job: Pick<GroupJob, 'user' | 'clientId'>,
): Delivery {
  if (socket.caller.user !== job.user) return 'nothing';
  // Hosted: every connection of the same user receives the same messages.
  if (socket.caller.form === 'hosted') return 'everything';
  if (job.clientId === null) return 'broadcasts';
  return job.clientId === socket.clientId ? 'everything' : 'nothing';
}

/** JSON messages the original sends to all when a prompt names no client id (recording `no-client-id`). */
const BROADCASTS = new Set(['progress', 'progress_state', 'execution_interrupted']);

export function isShared(share: Delivery, type: string, { kind }: Pick<GroupJob, 'kind'>): boolean {
  if (share === 'everything') return true;
  // A prompt that is taken out of the queue before its start is announced to no socket by the original.
  return share === 'broadcasts' && kind !== 'unstarted' && BROADCASTS.has(type);
}

/** The `exception_type`s the hosted documentation names. */
export const DOCUMENTED_EXCEPTIONS: readonly string[] = [
  'ValidationError',
  'ModelDownloadError',
  'ImageDownloadError',
  'OOMError',
  'InsufficientFundsError',
  'InactiveSubscriptionError',
];

const BEGIN = 'execution_start execution_cached';

/** All JSON messages of a job in order, as the original sends them to the client they are for. */
export function outlineOf({ kind, size }: Pick<GroupJob, 'kind' | 'size'>): RegExp {
  switch (kind) {
    case 'grown': {
      // Steps that come within 100 ms of the one before are left out, but for the first and the last.
      const steps = Array.from({ length: size }, (_, i) => {
        const step = `progress_state progress:${i + 1}/${size} `;
        return i === 0 || i === size - 1 ? step : `(${step})?`;
      });
      const grows = `progress_state executing:1 ${steps.join('')}progress_state`;
      const saves = 'progress_state executing:9 executed:9 progress_state';
      return whole(`${BEGIN} ${grows} ${saves} execution_success executing:null`);
    }
    case 'sized': {
      const made = 'progress_state executing:1 progress_state';
      const measured = 'progress_state executing:2 progress_state';
      const shown = 'progress_state executing:3 executed:3 progress_state';
      return whole(`${BEGIN} ${made} ${measured} ${shown} execution_success executing:null`);
    }
    case 'streamed': {
      const made = 'progress_state executing:1 progress_state';
      const sent = 'progress_state executing:5 progress_state progress:0/1 progress_state';
      return whole(`${BEGIN} ${made} ${sent} execution_success executing:null`);
    }
    case 'failed':
      return whole(`${BEGIN} progress_state executing:3 execution_error executing:null`);
    case 'misnamed': {
      const made = 'progress_state executing:1 progress_state';
      return whole(`${BEGIN} ${made} progress_state executing:9 execution_error executing:null`);
    }
    case 'cancelled': {
      const grows = String.raw`progress_state executing:1( progress_state progress:\d+/\d+)*`;
      return whole(`${BEGIN} ${grows} execution_interrupted executing:null`);
    }
    case 'unstarted':
      return whole('execution_interrupted executing:null');
  }
}

/** The last word about a job before its final `executing`. */
export function endOf({ kind }: Pick<GroupJob, 'kind'>): string {
  if (kind === 'failed' || kind === 'misnamed') return 'execution_error';
  return kind === 'cancelled' || kind === 'unstarted'
    ? 'execution_interrupted'
    : 'execution_success';
}

function whole(pattern: string): RegExp {
  return new RegExp(`^${pattern}$`);
}
