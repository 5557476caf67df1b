import type { Ledger, PromptOutline } from '../ledger/ledger.ts';
import { type ExceptionWord, shownEntry } from '../translate/shown-entry.ts';

export type HistoryQuery = {
  readonly maxItems: number | undefined;
  readonly offset: number | undefined;
};

/** Entries read at a time: as many as fit in so many bytes, or one that is larger. */
const BATCH_BYTES = 256 * 1024;
/** Of an entry that an older version wrote to Redis. */
const UNKNOWN_BYTES = BATCH_BYTES;

/** The entries a client asks for, oldest first. */
export function pageOf<T>(all: readonly T[], { maxItems, offset }: HistoryQuery): readonly T[] {
  if (maxItems === undefined) return all.slice(Math.max(0, offset ?? 0));
  if (maxItems <= 0) return [];
  // v1 takes the newest when only a maximum is given; a negative offset counts as none.
  if (offset === undefined || offset < 0) return all.slice(-maxItems);
  return all.slice(offset, offset + maxItems);
}

/** `GET /history` in pieces. An id used again shows its newest run in the place of its first. */
export async function* historyBody(
  ledger: Ledger,
  shown: readonly PromptOutline[],
  word: ExceptionWord = 'own',
): AsyncGenerator<string, undefined> {
  const newest = new Map(shown.map((outline) => [outline.promptId, outline]));
  let before = '{';
  for await (const entries of entriesOf(ledger, [...newest.values()])) {
    const members = entries.map(
      ([{ promptId }, text]) => `${JSON.stringify(promptId)}:${shownEntry(text, word)}`,
    );
    if (members.length === 0) continue;
    yield before + members.join(',');
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

/** The texts of entries in batches; those that were deleted meanwhile are left out. */
export async function* entriesOf(
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
  let bytes = 0;
  for (const outline of outlines) {
    const weight = outline.storedBytes || UNKNOWN_BYTES;
    if (batch.length > 0 && bytes + weight > BATCH_BYTES) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(outline);
    bytes += weight;
  }
  if (batch.length > 0) yield batch;
}
