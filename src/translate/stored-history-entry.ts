import {
  type Json,
  parseJson,
  stringifyJson,
  entriesInOrder,
  objectInOrder,
} from '../protocol/json.ts';
import type { HistoryEntry } from '../protocol/v1.ts';
import type { JobError } from '../protocol/v2.ts';
import {
  type DocumentedException,
  type ErrorData,
  documentedErrorData,
  exceptionTypes,
} from './exception-types.ts';
import { withVideoList } from './outputs.ts';

/**
 * The form of the results that a client understands. `own`: as the local server sends them, with
 * the class of a failed node in its own language. `documented`: as the hosted service documents
 * them, with one of six names and videos in a list of their own.
 */
export type ResultForm = 'own' | 'documented';

/**
 * Entries are stored with the node's own class where v1 has `exception_type`, and with the
 * documented name as their last member. No client is shown that member.
 */
const MEMBER_NAME = 'documented_exception_type';
const DOCUMENTED_MEMBER = new RegExp(`,"${MEMBER_NAME}":"(\\w+)"\\}$`);
const DOCUMENTED_MEMBER_CHARS = 100;

/**
 * Returns the end of the stored entry of a prompt: the last member if the prompt failed, and the
 * closing brace.
 */
export function endOfStoredEntry(error: JobError | null): string {
  return error === null ? '}' : `,"${MEMBER_NAME}":"${exceptionTypes(error).documented}"}`;
}

/** Returns the text of a stored history entry as it is shown to a client. */
export function shownEntry(stored: string, form: ResultForm): string {
  const documentedMember = DOCUMENTED_MEMBER.exec(stored.slice(-DOCUMENTED_MEMBER_CHARS));
  const own = documentedMember ? `${stored.slice(0, -documentedMember[0].length)}}` : stored;
  if (form === 'own' || (documentedMember === null && !own.includes(MOVES))) return own;
  return documentedEntry(own, documentedMember?.[1] as DocumentedException | undefined);
}

/** Parses the entry of a done row. It needs no checks, since Holdover wrote it. */
export function parseEntry(
  row: { readonly entryJson: string | null },
  form: ResultForm,
): HistoryEntry {
  return parseJson(shownEntry(row.entryJson ?? 'null', form)) as unknown as HistoryEntry;
}

/** A text that every output with a video contains. */
const MOVES = '"animated":[true]';

function documentedEntry(text: string, documented: DocumentedException | undefined): string {
  const entry = parseJson(text) as unknown as HistoryEntry;
  const lists = entriesInOrder(entry.outputs);
  const outputs = lists.map(([nodeId, output]) => [nodeId, withVideoList(output)] as const);
  const messages = entry.status.messages.map(([type, data]) => {
    const isError = documented !== undefined && type === 'execution_error';
    return [type, isError ? documentedErrorData(data as ErrorData, documented) : data] as const;
  });
  const status = { ...entry.status, messages };
  return stringifyJson({ ...entry, outputs: objectInOrder(outputs), status } as unknown as Json);
}
