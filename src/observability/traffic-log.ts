import type { Caller, JobApi } from '../protocol/job-api.ts';
import { readTarget } from '../protocol/request-target.ts';
import { isRouterPath } from '../protocol/router.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import { isV2Path } from '../protocol/v2-paths.ts';
import { type SocketFrame, describeFrame } from './described-frame.ts';
import { V2_CALLS, interceptCalls, observeEvents, type PortCall } from './intercepted-port.ts';
import type { Logger } from './log.ts';
import type { SecretRedactor } from './secret-redactor.ts';
import { type FindPromptId, createTrafficLinks } from './traffic-links.ts';
import { describeAnswer, describeArguments, describeEvent } from './v2-descriptions.ts';

/** Logs v1 calls and frames, and the v2 calls and events behind them, at level `debug`. */
export type TrafficLog = ReturnType<typeof createTrafficLog>;

export type HttpCall = {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly ms: number;
  readonly user: string | undefined;
  /** The prompts the call is about, by the ids clients know. */
  readonly promptIds: readonly string[];
};

type TrafficLogOptions = {
  readonly log: Pick<Logger, 'debug'>;
  readonly secrets: SecretRedactor;
  readonly promptIdOf: FindPromptId;
};

type Fields = { readonly [name: string]: unknown };

const MAX_TEXT_CHARS = 2000;

export function createTrafficLog({ log, secrets, promptIdOf }: TrafficLogOptions) {
  const links = createTrafficLinks(promptIdOf);

  function write(event: string, fields: Fields, message: string): void {
    log.debug({ event, ...(JSON.parse(secrets.redactedJson(fields)) as Fields) }, message);
  }

  function callFields(method: keyof JobApi, caller: Caller, args: readonly unknown[]) {
    const { user } = caller;
    const { key, secrets: sent = [], ...fields } = describeArguments(method, args);
    for (const secret of [caller.credential, ...sent]) secrets.add(secret);
    const promptId = links.promptOf(caller, fields.jobId ?? key);
    return { operation: V2_CALLS[method], user, promptId, ...fields };
  }

  async function logCall(method: keyof JobApi, call: PortCall, args: readonly unknown[]) {
    const caller = method === 'health' ? NO_CALLER : (args[0] as Caller);
    const fields = callFields(method, caller, args.slice(1));
    const startedAt = performance.now();
    const answer = await call(...args);
    const ms = Math.round(performance.now() - startedAt);
    const described = describeAnswer(method, answer);
    const { user } = caller;
    const jobId = described.jobId ?? fields.jobId;
    const promptId = fields.promptId ?? links.promptOf(caller, jobId);
    if (promptId !== undefined && jobId !== undefined) links.linkJob(user, jobId, promptId);
    write('v2.call', { ...fields, ...described, promptId, ms }, 'v2 call');
    if (method !== 'events') return answer;
    return observeEvents(answer, {
      onEvent(event) {
        const about = { user, promptId: links.promptOf({ user }, jobId), jobId };
        write('v2.event', { ...about, ...describeEvent(event) }, 'v2 event');
      },
    });
  }

  return {
    /** An HTTP call of a client that was answered. */
    httpCall(this: void, { url, promptIds, ...call }: HttpCall): void {
      const { path } = readTarget(url);
      const isV2 = isRouterPath(path) || isV2Path(path);
      const event = isV2 ? 'v2.client_call' : 'v1.call';
      const [promptId] = promptIds;
      const more = promptIds.length > 1 ? { promptIds } : {};
      write(event, { ...call, url: withoutCredentials(url), promptId, ...more }, 'call answered');
    },
    /** Calls in the name of this very object are about this prompt. */
    submission: links.linkCaller,
    /** A frame of a v1 socket. */
    frame(this: void, frame: SocketFrame): void {
      const { payload } = frame;
      const described = describeFrame(payload);
      const promptId = links.promptOfFrame(frame, described.promptId);
      const { user, sid, direction } = frame;
      const { type } = described;
      const bytes = frame.totalBytes ?? described.bytes;
      const text = typeof payload === 'string' ? payload.slice(0, MAX_TEXT_CHARS) : undefined;
      write('v1.frame', { direction, user, sid, promptId, type, text, bytes }, 'v1 frame');
    },
    /** The same port; its calls and the events of its streams are logged. */
    wrap: (jobs: JobApi): JobApi => interceptCalls(jobs, logCall),
  };
}

const NO_CALLER: Caller = { user: '' };

/** Gets the frames of all sockets while it is on. */
export type FrameObserver = {
  readonly isOn: () => boolean;
  readonly record: (frame: SocketFrame) => void;
};
