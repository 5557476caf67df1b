import { LeadershipLost } from '../prompts/prompt-event-log.ts';
import type { LogStream } from './log-stream.ts';

/** What the ledger is to know of the prompts this process looks after. */
export function createLeadership(
  streams: ReadonlyMap<string, Pick<LogStream, 'token' | 'loseLead'>>,
) {
  return {
    token(key: string): string {
      const token = streams.get(key)?.token();
      if (token === undefined) throw new LeadershipLost();
      return token;
    },
    /** Whoever is refused need not wait for the next renewal to know. */
    refused(key: string, token: string): Error {
      const stream = streams.get(key);
      if (stream?.token() === token) stream.loseLead();
      return new LeadershipLost();
    },
  };
}
