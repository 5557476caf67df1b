import type { Ledger, PromptOutline } from '../ledger/ledger.ts';
import { type ExceptionWord, shownEntry } from '../translate/stored-history-entry.ts';

export type HistoryQuery = {
  readonly maxItems: number | undefined;
  readonly offset: number | undefined;
};

/** Entries read at a time: as many as fit in so many bytes, or one that is larger. */
const BATCH_BYTES = 256 * 1024;
/** The size assumed for an entry that an older version wrote to Redis. */
const UNKNOWN_BYTES = BATCH_BYTES;

/** The entries a client asks for, oldest first. */
export function paginate<T>(all: readonly T[], { maxItems, offset }: HistoryQuery): readonly T[] {
  if (maxItems === undefined) return all.slice(Math.max(0, offset ?? 0));
  if (maxItems <= 0) return [];
  // v1 takes the newest when only a maximum is given; a negative offset counts as none.
  if (offset === undefined || offset < 0) return all.slice(-maxItems);
  return all.slice(offset, offset + maxItems);
}

/** `GET /history` in pieces. An id used again shows its newest run in the place of its first. */
export async function* historyChunks(
  ledger: Ledger,
  page: readonly PromptOutline[],
  exceptionWord: ExceptionWord = 'own',
): AsyncGenerator<string, undefined> {
  const newest = new Map(page.map((outline) => [outline.promptId, outline]));
  let separator = '{';
  for await (const entries of readEntryBatches(ledger, [...newest.values()])) {
    const members = entries.map(
      ([{ promptId }, text]) => `${JSON.stringify(promptId)}:${shownEntry(text, exceptionWord)}`,
    );
    if (members.length === 0) continue;
    yield separator + members.join(',');
    separator = ',';
  }
  yield separator === '{' ? '{}' : '}';
}

/** The texts of entries in batches; those that were deleted meanwhile are left out. */
export async function* readEntryBatches(
  { prompts }: Ledger,
  outlines: readonly PromptOutline[],
): AsyncGenerator<readonly (readonly [PromptOutline, string])[]> {
  for (const batch of batchesOf(outlines)) {
    const texts = await prompts.entries(batch.map(({ key }) => key));
    yield batch.flatMap((outline, index) => {
      const text = texts[index] ?? null;
      return text === null ? [] : [[outline, text] as const];
    });
  }
}

function* batchesOf(outlines: readonly PromptOutline[]): Generator<readonly PromptOutline[]> {
  let batch: PromptOutline[] = [];
  let batchBytes = 0;
  for (const outline of outlines) {
    const sizeBytes = outline.storedBytes || UNKNOWN_BYTES;
    if (batch.length > 0 && batchBytes + sizeBytes > BATCH_BYTES) {
      yield batch;
      [batch, batchBytes] = [[], 0];
    }
    batch.push(outline);
    batchBytes += sizeBytes;
  }
  if (batch.length > 0) yield batch;
}
