import type { Answer } from '../engine/answers.ts';
import type { Assets } from '../engine/assets.ts';
import type { LiveJob } from '../engine/live.ts';
import type { StoredOutput } from '../engine/protocol.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Errands } from './errand.ts';
import type { Runs } from './runs.ts';

export type Fence = {
  readonly ledger: Ledger;
  readonly runs: Pick<Runs, 'holds'>;
  readonly assets: Pick<Assets, 'discard'>;
  readonly held: Errands['held'];
};

/** Files are made under the fence of their job: what comes too late is refused, or taken back. */
export function fenced(answer: Answer, { ledger, runs, assets, held }: Fence): Answer {
  async function refuseStale(job: LiveJob): Promise<void> {
    const ours = held(job);
    if (ours === undefined || !(await runs.holds(ours))) throw new Error(TAKEN_OVER);
  }
  const save: Answer = async (job, question) => {
    await refuseStale(job);
    const saved = await answer(job, question);
    try {
      await refuseStale(job);
    } catch (error) {
      const row = await ledger.assets.get((saved as StoredOutput).id);
      if (row) await assets.discard(row);
      throw error;
    }
    return saved;
  };
  return (job, question) => (question.kind === 'save' ? save : answer)(job, question);
}

export const TAKEN_OVER = 'this job was taken over by another worker';
