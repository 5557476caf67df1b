import type { Called } from '../clients/raw-call.ts';

/** An answer in a line: its status, and the form of its body with the word for programs in it. */
export function errorSummary({
  status,
  headers,
  text,
}: Pick<Called, 'status' | 'headers' | 'text'>): string {
  return `${status} ${bodySummary(String(headers['content-type'] ?? ''), text)}`;
}

function bodySummary(type: string, text: string): string {
  if (text === '') return 'empty';
  if (type.startsWith('text/plain')) return `text: ${text.split('\n', 1)[0]}`;
  if (!type.startsWith('application/json')) return type;
  const body = JSON.parse(text);
  const members = Object.keys(body ?? {})
    .toSorted()
    .join(',');
  const said = FORMS[members]?.(body);
  return said ?? (typeof body?.error === 'object' ? `unknown form: ${members}` : 'json');
}

const FORMS: { readonly [members: string]: (body: any) => string } = {
  'error,node_errors': ({ error }) => `refusal ${error.type}`,
  'code,error,message,node_errors': ({ code, error }) =>
    code === error.type ? `hosted refusal ${code}` : `two words: ${code}, ${error.type}`,
  'code,message': ({ code }) => `code ${code}`,
  error: ({ error }) => (typeof error === 'string' ? `error: ${error}` : `v2 ${error.code}`),
};
