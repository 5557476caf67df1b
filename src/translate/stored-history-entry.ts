import {
  type Json,
  type JsonObject,
  isJsonObject,
  parseJson,
  stringifyJson,
} from '../protocol/json.ts';
import type { JobError } from '../protocol/v2.ts';
import { type DocumentedException, exceptionTypes } from './exception-types.ts';

/**
 * The `exception_type` a client understands: the node's own class, or one of the six documented
 * names.
 */
export type ResultForm = keyof ReturnType<typeof exceptionTypes>;

/**
 * Entries are stored with the own word where v1 has it, and with the documented one as their last
 * member, which no client is shown.
 */
const MEMBER_NAME = 'documented_exception_type';
const DOCUMENTED_MEMBER = new RegExp(`,"${MEMBER_NAME}":"(\\w+)"\\}$`);
const DOCUMENTED_MEMBER_CHARS = 100;

/** The last member of the stored entry of a prompt that failed, and the brace that closes the entry. */
export function endOfStoredEntry(error: JobError | null): string {
  return error === null ? '}' : `,"${MEMBER_NAME}":"${exceptionTypes(error).documented}"}`;
}

/** The text of a stored history entry as a client is shown it. */
export function shownEntry(stored: string, form: ResultForm): string {
  const documentedMember = DOCUMENTED_MEMBER.exec(stored.slice(-DOCUMENTED_MEMBER_CHARS));
  const own = documentedMember ? `${stored.slice(0, -documentedMember[0].length)}}` : stored;
  const isFailure = documentedMember !== null || own.includes('"execution_error"');
  if (form === 'own' || !isFailure) return own;
  return withDocumented(own, documentedMember?.[1] as DocumentedException | undefined);
}

function withDocumented(text: string, documented: DocumentedException | undefined): string {
  const entry = parseJson(text);
  if (!isJsonObject(entry) || !isJsonObject(entry.status)) return text;
  const { messages } = entry.status;
  if (!Array.isArray(messages)) return text;
  const shown = messages.map((message) => inDocumentedWord(message, documented));
  return stringifyJson({ ...entry, status: { ...entry.status, messages: shown } });
}

function inDocumentedWord(message: Json, documented: DocumentedException | undefined): Json {
  if (!Array.isArray(message) || message[0] !== 'execution_error') return message;
  const [type, data] = message;
  if (!isJsonObject(data)) return message;
  return [type, { ...data, exception_type: documented ?? documentedOf(data) }];
}

/** Entries of earlier versions have one name only. */
function documentedOf(data: JsonObject): DocumentedException {
  const { exception_type: own, exception_message: message, node_type: classType } = data;
  return exceptionTypes({
    code: '',
    message: textOf(message),
    class_type: textOf(classType),
    x_exception_type: textOf(own),
  }).documented;
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
