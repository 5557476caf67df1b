import { readTarget } from '../protocol/request-target.ts';
import { isRouterPath } from '../protocol/router.ts';
import { withoutCredentials } from '../protocol/url-credentials.ts';
import { isV2Path } from '../protocol/v2-paths.ts';
import type { CallCauses } from './call-causes.ts';
import { type SocketFrame, describeFrame } from './described-frame.ts';
import type { Logger } from './log.ts';
import type { PortSubscriber } from './observed-port.ts';
import type { SecretRedactor } from './secret-redactor.ts';
import { describeAnswer, describeEvent } from './v2-descriptions.ts';

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

/** Logs v1 calls and frames, and the v2 calls and events behind them, at level `debug`. */
export class TrafficLog {
  readonly #options: TrafficLogOptions;

  constructor(options: TrafficLogOptions) {
    this.#options = options;
  }

  /** An HTTP call of a client that was answered. */
  httpCall({ url, promptIds, ...call }: HttpCall): void {
    const { path } = readTarget(url);
    const isV2 = isRouterPath(path) || isV2Path(path);
    const event = isV2 ? 'v2.client_call' : 'v1.call';
    const [promptId] = promptIds;
    const more = promptIds.length > 1 ? { promptIds } : {};
    this.#write(event, { ...call, url: withoutCredentials(url), promptId, ...more });
  }

  /** A frame of a v1 socket. */
  frame(frame: SocketFrame): void {
    const { payload, user, sid, direction } = frame;
    const described = describeFrame(payload);
    const promptId = this.#options.causes.promptOfFrame(frame, described.promptId);
    const { type } = described;
    const bytes = frame.totalBytes ?? described.bytes;
    const text = typeof payload === 'string' ? payload.slice(0, MAX_TEXT_CHARS) : undefined;
    this.#write('v1.frame', { direction, user, sid, promptId, type, text, bytes });
  }

  /** Logs a v2 call and the events of its stream. */
  readonly portCall: PortSubscriber = (call) => {
    const { key: _key, secrets: _secrets, ...fields } = call.fields;
    for (const secret of call.secrets) this.#options.secrets.add(secret);
    const user = call.caller?.user ?? '';
    // A prompt is found by its own cause before its job is known.
    const about = { operation: call.operation, user, promptId: call.promptId, ...fields };
    return {
      onAnswer: (answer, ms) => {
        const { promptId, jobId } = call;
        const described = { ...about, promptId, jobId, ...describeAnswer(answer) };
        this.#write('v2.call', { ...described, ms: Math.round(ms) });
      },
      onEvent: (event) => {
        const { promptId, jobId } = call;
        this.#write('v2.event', { user, promptId, jobId, ...describeEvent(event) });
      },
    };
  };

  #write(event: string, fields: Fields): void {
    const { log, secrets } = this.#options;
    log.debug({ event, ...(JSON.parse(secrets.redactedJson(fields)) as Fields) }, event);
  }
}

/** Gets the frames of all sockets while it is on. */
export type FrameObserver = {
  readonly isOn: () => boolean;
  readonly record: (frame: SocketFrame) => void;
};
