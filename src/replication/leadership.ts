import { LeadershipLost } from '../prompts/prompt-event-log.ts';
import type { LogStream } from './log-stream.ts';

/** Write tokens of the prompts that this process owns, for the ledger. */
export function createLeadership(streams: {
  get(key: string): Pick<LogStream, 'token' | 'loseLead'> | undefined;
}) {
  return {
    token(key: string): string {
      const token = streams.get(key)?.token();
      if (token === undefined) throw new LeadershipLost();
      return token;
    },
    /** A refused write ends the ownership at once, without waiting for the next renewal. */
    refused(key: string, token: string): Error {
      const stream = streams.get(key);
      if (stream?.token() === token) stream.loseLead();
      return new LeadershipLost();
    },
  };
}
