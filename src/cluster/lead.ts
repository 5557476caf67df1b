import { LeadLost } from '../v1/prompt-journal.ts';
import type { Line } from './line.ts';

/** What the ledger is to know of the prompts this process looks after. */
export function leadOver(lines: ReadonlyMap<string, Pick<Line, 'token' | 'lose'>>) {
  return {
    token(key: string): string {
      const token = lines.get(key)?.token();
      if (token === undefined) throw new LeadLost();
      return token;
    },
    /** Whoever is refused need not wait for the next renewal to know. */
    refused(key: string, token: string): Error {
      const line = lines.get(key);
      if (line?.token() === token) line.lose();
      return new LeadLost();
    },
  };
}
