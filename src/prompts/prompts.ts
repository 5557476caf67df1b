import { Acceptor } from './accept.ts';
import { type Cancel, PromptCanceller } from './cancel.ts';
import { JobCanceller } from './follow/cancel-job.ts';
import { Follower } from './follow/follower.ts';
import { ExternalJobImporter } from './import-external-job.ts';
import {
  type MarkFetched,
  type MarkJobFetched,
  createMarkFetched,
  createMarkJobFetched,
} from './mark-fetched.ts';
import type { PromptParts } from './take-over-prompt.ts';
import type { PromptPorts } from './ports.ts';
import { LostJobResender } from './submit/resend-lost.ts';
import { Submissions } from './submit/submissions.ts';
import { PromptTakeover } from './take-over.ts';

/** The life of prompts from their `POST` to their history. */
export class Prompts {
  readonly externalJobs: ExternalJobImporter;
  readonly acceptor: Acceptor;
  readonly cancel: Cancel;
  readonly markFetched: MarkFetched;
  readonly markJobFetched: MarkJobFetched;
  readonly #ports: PromptPorts;
  readonly #parts: PromptParts;
  readonly #canceller: PromptCanceller;
  readonly #takeover: PromptTakeover;

  constructor(ports: PromptPorts) {
    this.#ports = ports;
    this.#parts = createParts(ports);
    const { follower, jobCanceller } = this.#parts;
    this.#canceller = new PromptCanceller(ports, this.#parts);
    this.cancel = this.#canceller.cancel;
    this.#takeover = new PromptTakeover(ports, this.#parts);
    this.acceptor = new Acceptor(ports, this.#parts, this.#takeover);
    this.externalJobs = new ExternalJobImporter(ports, follower, jobCanceller);
    this.markFetched = createMarkFetched(ports);
    this.markJobFetched = createMarkJobFetched(ports, this.markFetched);
  }

  /** The number of accepted prompts that wait until the upstream has capacity. */
  outboxDepth(): number {
    return this.#parts.submissions.outbox.depth();
  }

  /** Takes over the prompts of an earlier process. Call it once, before the first request. */
  takeOver(): Promise<void> {
    return this.#takeover.start((key) => this.#canceller.cancelRequested(key));
  }

  /** Resolves when the live prompts show everything that any process did before for this user. */
  readonly whenCurrent = async (user: string): Promise<void> => {
    await this.#ports.records.eventLog.whenCaughtUp(user);
    await this.#takeover.whenTakenOver(user);
  };

  async close(): Promise<void> {
    const { follower, jobCanceller, submissions } = this.#parts;
    await this.externalJobs.close();
    jobCanceller.close();
    await Promise.all([submissions.close(), follower.close()]);
    await this.#ports.records.eventLog.close();
  }
}

function createParts(ports: PromptPorts): PromptParts {
  const jobCanceller = new JobCanceller(ports);
  const follower: Follower = new Follower(ports, (...lost) => resender.resend(...lost));
  const submissions = new Submissions(ports, { follower, jobCanceller });
  const resender = new LostJobResender(ports, submissions);
  return { follower, jobCanceller, submissions };
}
