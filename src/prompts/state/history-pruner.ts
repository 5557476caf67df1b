import type { HistoryLimits, PromptStore } from '../../ledger/ledger.ts';

/** History is pruned when it exceeds its limit by one percent, or after this many prompts. */
const MAX_PROMPTS_BETWEEN_PRUNES = 50;

/** Prunes the history of ended prompts, not after each prompt but often enough. */
export class HistoryPruner {
  readonly #prompts: PromptStore;
  readonly #limits: HistoryLimits;
  readonly #pruneEvery: number;
  #storedBytes = 0;
  #ended = 0;

  constructor(prompts: PromptStore, limits: HistoryLimits) {
    this.#prompts = prompts;
    this.#limits = limits;
    this.#pruneEvery = Math.min(MAX_PROMPTS_BETWEEN_PRUNES, Math.ceil(limits.count / 100));
  }

  noteStored(bytes: number): void {
    this.#storedBytes += bytes;
  }

  /** Called after each prompt that has ended. */
  async noteEnded(): Promise<void> {
    this.#ended++;
    const isDue = this.#ended % this.#pruneEvery === 0;
    if (!isDue && this.#storedBytes <= this.#limits.bytes / 100) return;
    this.#storedBytes = 0;
    await this.#prompts.pruneHistory(this.#limits);
  }
}
