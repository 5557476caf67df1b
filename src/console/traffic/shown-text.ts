import { textStart } from '../../observability/text-start.ts';
import type { SecretRedactor } from '../../observability/secret-redactor.ts';
import {
  REMOVED,
  isCredentialMember,
  withoutCredentialsIn,
} from '../../protocol/url-credentials.ts';

/** Returns a text without credentials, as the inspector shows it. */
export type ShowText = (text: string) => string;

/** Removes texts that look like credentials, and every key that a caller has sent. */
export function createShowText(secrets: SecretRedactor): ShowText {
  return (text) =>
    secrets.redact(
      withoutCredentialsIn(text)
        .replaceAll(MEMBER_IN_TEXT, `$1$3${REMOVED}`)
        .replaceAll(ASSIGNMENT_IN_TEXT, `$1${REMOVED}`),
    );
}

/**
 * Returns a text for one line of the list. Its end is cut only after credentials were removed,
 * since half of a key is not recognized.
 */
export function lineText(showText: ShowText, text: string): string {
  return textStart(showText(textStart(text, MAX_SEARCHED_CHARS)), MAX_TEXT_CHARS);
}

const MAX_TEXT_CHARS = 160;
const MAX_SEARCHED_CHARS = 16_384;

const SECRETS = String.raw`(?:api|auth|access|private|secret|signing)[-_.]?keys?|(?:api|auth|access|refresh|session|bearer|id)[-_.]?tokens?|token|secrets?|passw(?:or)?ds?|passphrases?|credentials?|cookies?2?|jwts?|authorization|signature`;
const SECRET_ENDS = String.raw`(?:[-_.](?:id|value|[a-z]+[-_.]org))?`;
const SECRET_NAME = new RegExp(
  String.raw`^(?:.*(?:${SECRETS})${SECRET_ENDS}|pwd|session[-_]?id)$`,
  'i',
);
/**
 * Matches members of JSON that cannot be parsed, such as the beginning of a long body. Any client
 * may choose the text, so this takes linear time.
 */
const MEMBER_IN_TEXT = new RegExp(
  String.raw`((?<!\\)(\\*["'])[\w.-]{0,64}(?:${SECRETS})${SECRET_ENDS}\2\s*:\s*(?:\[\s*)?)(\2)(?:(?!(?<!\\)\2)[^\n])+`,
  'gi',
);
/** Matches `token=…`, as in a form or a command line. */
const ASSIGNMENT_IN_TEXT = new RegExp(
  String.raw`(\b[\w.-]{0,64}(?:${SECRETS})${SECRET_ENDS}=)(?!\[)[^\s"'\\&;,<>]+`,
  'gi',
);
const SECRET_HEADER = /(^|-)(auth|session|sid|sig|key|assertion|protocol)$/i;
/** A header with a random value for each handshake, which is no secret. */
const HANDSHAKE_HEADER = 'sec-websocket-key';

/**
 * Returns true when a member of JSON, or a part of a form, with this name holds a credential. The inspector
 * removes more than the log.
 */
export function isSecretName(name: string): boolean {
  return isCredentialMember(name) || SECRET_NAME.test(name.trim());
}

type Headers = { readonly [name: string]: number | string | readonly string[] | undefined };

/** Returns the headers without credentials, one pair for each value. */
export function shownHeaders(headers: Headers): readonly (readonly [string, string])[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? (value as readonly string[]) : [value];
    return values.map((one) => [name, shownHeader(name, String(one ?? ''))] as const);
  });
}

function shownHeader(name: string, value: string): string {
  const isSecret = name !== HANDSHAKE_HEADER && (isSecretName(name) || SECRET_HEADER.test(name));
  return isSecret ? REMOVED : withoutCredentialsIn(value);
}
