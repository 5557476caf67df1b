import type { Ledger, PromptRow } from '../ledger/ledger.ts';
import { parseJson } from '../protocol/json.ts';
import type { HistoryEntry } from '../protocol/v1.ts';
import { type ExceptionWord, shownEntry } from '../translate/stored-history-entry.ts';

/** The entry of a done row; what is stored there came from us. */
export function parseEntry(
  row: Pick<PromptRow, 'entryJson'>,
  exceptionWord: ExceptionWord = 'own',
): HistoryEntry {
  return parseJson(shownEntry(row.entryJson ?? 'null', exceptionWord)) as unknown as HistoryEntry;
}

/** A done prompt under its v1 id or its v2 id. */
export async function findEndedPrompt(
  { prompts }: Ledger,
  user: string,
  id: string,
): Promise<PromptRow | undefined> {
  const row = (await prompts.find(user, id)) ?? (await prompts.findByJob(user, id));
  return row?.state === 'done' ? row : undefined;
}
