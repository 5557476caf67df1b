import { isoTime } from '../lib/clock.ts';

type ScheduledBrownout = {
  readonly fromMs: number;
  /** `undefined`: the brownout has no end. */
  readonly toMs: number | undefined;
  /** `undefined`: calls are refused, not delayed. */
  readonly delayMs: number | undefined;
};

/** Texts of `notification` messages. They tell users why their prompt waits. */
export const NOTIFICATION_TEXTS = {
  waits: (promptId: string): string =>
    `Prompt ${promptId} waits: the service that runs it has no room for it right now, or your ` +
    'earlier prompts are sent first. It is sent as soon as there is room. You need not submit it again; delete it from the queue if you do ' +
    'not want to wait.',
  queued: (promptId: string): string =>
    `Prompt ${promptId} waits in the queue for its turn. You need not submit it again; delete it from ` +
    'the queue if you do not want to wait.',
  sentAgain: (promptId: string): string =>
    `Prompt ${promptId} will be retried: the service that runs it lost it before it began. You ` +
    'need not submit it again.',
  outcomeUnknown: (promptId: string): string =>
    `Prompt ${promptId} is being looked for: the service that runs it did not say whether it took ` +
    'the prompt. It will be retried if the service does not have it. You need not submit it again.',
  brownout: ({ fromMs, toMs, delayMs }: ScheduledBrownout): string => {
    const until = toMs === undefined ? '' : ` to ${isoTime(toMs)}`;
    const what = delayMs === undefined ? 'be refused' : `be held up for ${delayMs / 1000} s each`;
    return (
      `The end of the v1 API will be rehearsed from ${isoTime(fromMs)}${until}: your calls may ` +
      `${what} during that time. Plan your work around it, and move to the v2 API before v1 ends.`
    );
  },
} as const;
