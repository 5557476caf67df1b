import { readTarget } from './request-target.ts';

/** One `name=value` of a query: its text, and the decoded name and value. */
type QueryPart = { readonly text: string; readonly name: string; readonly value: string };

/** The query parameter for v1 clients that cannot send a header. */
const LOGIN_PARAMETER = 'token';

/**
 * Names of query parameters that give access: logins, and the signatures of links that carry their
 * own authorization (Holdover's own, S3, Google, Azure, CloudFront).
 */
const CREDENTIAL =
  /^(x[-_])?(.*(token|api[-_]?key|access[-_]?key|secret|passw(or)?d|credential|signature)(_id|_comfy_org|_service_org|id)?|key|sig|auth|authorization|policy|key-pair-id|session|sessionid|jwt|pwd|cookie|code)$/i;

/** The text in the place of a credential. */
export const REMOVED = '[removed]';

/**
 * The depth to which addresses inside addresses are read. Each level is read twice, as an address
 * and as a query.
 */
const MAX_DEPTH = 4;

/**
 * Returns the first `token` in the query of a request target. Only this parameter decides who is
 * logged in.
 */
export function loginIn(url: string): string | undefined {
  const { query } = readTarget(url);
  return query === '' ? undefined : partsOf(query).find(isLogin)?.value;
}

/**
 * Returns the query without the login. The rest stays unchanged byte for byte. With `keys`, only a
 * `token` that equals one of them is removed.
 */
export function withoutLogin(query: string, keys?: readonly (string | undefined)[]): string {
  if (query === '') return '';
  const parts = partsOf(query);
  const kept = parts.filter(
    (part) => !isLogin(part) || (keys && !keys.includes(part.value.trim())),
  );
  if (kept.length === parts.length) return query;
  return kept.length === 0 ? '' : `?${kept.map(({ text }) => text).join('&')}`;
}

/**
 * Returns a request target or an address without its credentials, as it may be logged and recorded.
 */
export function withoutCredentials(url: string): string {
  return redactedUrl(url, 0);
}

/**
 * Returns a text without the credentials in its addresses, headers and members, as it may be
 * logged.
 */
export function withoutCredentialsIn(text: string): string {
  return redactedText(text, 0);
}

/**
 * `depth` counts the parameters that the address is inside of: a parameter may be an address with
 * parameters.
 */
function redactedUrl(url: string, depth: number): string {
  const plain = url.includes('@') ? withoutUserinfo(url) : url;
  const { query } = readTarget(plain);
  if (query === '') return plain;
  const parts = partsOf(query);
  const shown = parts.map((part) => redactedPart(part, depth));
  if (shown.every((text, at) => text === parts[at]?.text)) return plain;
  return `${plain.slice(0, plain.length - query.length)}?${shown.join('&')}`;
}

function redactedText(text: string, depth: number): string {
  if (!SUSPICIOUS.test(text)) return text;
  if (depth > MAX_DEPTH) return REMOVED;
  return text
    .replaceAll(URL_IN_TEXT, (url) => redactedUrl(url, depth))
    .replaceAll(QUERY_IN_TEXT, (query) => redactedUrl(query, depth))
    .replaceAll(SCHEME_IN_TEXT, `$1 ${REMOVED}`)
    .replaceAll(MEMBER_IN_TEXT, `$1${REMOVED}`)
    .replaceAll(HEADER_IN_TEXT, `$1${REMOVED}`);
}

/** True when a header or a member of `extra_data` with this name holds a credential. */
export function isCredentialMember(name: string): boolean {
  return MEMBER.test(name);
}

const WHOLE_NAME = String.raw`(?:proxy-)?authorization|(?:set-)?cookie2?|password|secret`;
const NAME_PART = String.raw`(?:api[-_]?key|(?:auth|access|bearer)[-_]?token)`;
/**
 * Clients choose the names in `extra_data`, so the expression searches for the end once, not behind
 * each part.
 */
const MEMBER = new RegExp(
  String.raw`^(?:(?:${WHOLE_NAME}|token)$|(?=[\w-]*$)[\w-]*?${NAME_PART})`,
  'i',
);
/** In a text, a name may begin at every word. */
const MEMBERS = String.raw`${WHOLE_NAME}|[\w-]{0,64}${NAME_PART}[\w-]{0,64}`;

/** Hardly any line of a log matches this; the other lines are not searched further. */
const SUSPICIOUS = /:\/\/|\?|bearer|basic |authorization|api[-_]?key|token|cookie|secret|password/i;

const URL_END = String.raw`\s"'<>\\`;
/**
 * Any client may choose such a text: each of these expressions takes time in proportion to its
 * length.
 */
const URL_IN_TEXT = new RegExp(String.raw`\b[a-z][a-z0-9+.-]{0,30}:\/\/[^${URL_END}]+`, 'gi');
const QUERY_IN_TEXT = new RegExp(String.raw`\?(?<=\/[^${URL_END}?]*\?)[^${URL_END}]+`, 'g');
const SCHEME_IN_TEXT = /\b(bearer|basic)\s+[\w.~+/=-]{6,}/gi;
/** Matches members of JSON, and of JSON inside a JSON string. */
const MEMBER_IN_TEXT = new RegExp(
  String.raw`((?<!\\)(\\*["'])(?:${MEMBERS})\2\s*:\s*\2)(?:(?!(?<!\\)\2)[^\n])+`,
  'gi',
);
const HEADER_IN_TEXT = new RegExp(
  String.raw`(\b(?:${MEMBERS})\s*[:=]\s*)(?=[^\s"'\\[])[^"'\\\n,;]+`,
  'gi',
);

function partsOf(query: string): QueryPart[] {
  return query
    .slice(1)
    .split('&')
    .map((text) => {
      // `URLSearchParams` drops a leading question mark, hence the `&`.
      const [[name, value] = ['', '']] = new URLSearchParams(`&${text}`);
      return { text, name, value };
    });
}

function isLogin({ name }: QueryPart): boolean {
  return name === LOGIN_PARAMETER;
}

function redactedPart({ text, name, value }: QueryPart, depth: number): string {
  const written = text.split('=', 1)[0] ?? '';
  // Some clients write the names of lists and of members with brackets.
  const names = name.split(/[[\]]/);
  if (value !== '' && names.some((each) => CREDENTIAL.test(each.trim())))
    return `${written}=${REMOVED}`;
  // An address in a parameter may hold a login of its own, and JSON in a parameter a key.
  const shown = redactedText(value, depth + 1);
  return shown === value ? text : `${written}=${encodeURIComponent(shown)}`;
}

function withoutUserinfo(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:)?\/\/[^/?#]*@/i, `$1//${REMOVED}@`);
}
