import { readTarget } from '../protocol/request-target.ts';
import { isRouterPath } from '../protocol/router.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import { isV2Path } from '../protocol/v2-paths.ts';
import type { CallCauses } from './call-causes.ts';
import { type SocketFrame, describeFrame } from './described-frame.ts';
import type { Logger } from './log.ts';
import type { CallHandlers, PortCall } from './observed-port.ts';
import type { SecretRedactor } from './secret-redactor.ts';
import { describeAnswer, describeEvent } from './v2-descriptions.ts';

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
  readonly log: Logger;
  readonly secrets: SecretRedactor;
  readonly causes: CallCauses;
};

type Fields = { readonly [name: string]: unknown };

const MAX_TEXT_CHARS = 2000;

export function createTrafficLog({ log, secrets, causes }: TrafficLogOptions) {
  function write(event: string, fields: Fields, message: string): void {
    log.debug({ event, ...(JSON.parse(secrets.redactedJson(fields)) as Fields) }, message);
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
    /** A frame of a v1 socket. */
    frame(this: void, frame: SocketFrame): void {
      const { payload } = frame;
      const described = describeFrame(payload);
      const promptId = causes.promptOfFrame(frame, described.promptId);
      const { user, sid, direction } = frame;
      const { type } = described;
      const bytes = frame.totalBytes ?? described.bytes;
      const text = typeof payload === 'string' ? payload.slice(0, MAX_TEXT_CHARS) : undefined;
      write('v1.frame', { direction, user, sid, promptId, type, text, bytes }, 'v1 frame');
    },
    /** Logs a v2 call and the events of its stream. */
    portCall(this: void, call: PortCall): CallHandlers {
      const { key: _key, secrets: _secrets, ...fields } = call.fields;
      for (const secret of call.secrets) secrets.add(secret);
      const user = call.caller?.user ?? '';
      const about = { operation: call.operation, user, promptId: call.promptId, ...fields };
      return {
        onAnswer(answer, ms) {
          const { promptId } = call;
          const described = { ...about, ...describeAnswer(call.method, answer) };
          write('v2.call', { ...described, promptId, ms: Math.round(ms) }, 'v2 call');
        },
        onEvent(event) {
          const { promptId, jobId } = call;
          write('v2.event', { user, promptId, jobId, ...describeEvent(event) }, 'v2 event');
        },
      };
    },
  };
}

/** Gets the frames of all sockets while it is on. */
export type FrameObserver = {
  readonly isOn: () => boolean;
  readonly record: (frame: SocketFrame) => void;
};
