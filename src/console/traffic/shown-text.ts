import { isCredentialMember, withoutCredentialsIn } from '../../protocol/url-credentials.ts';

const REMOVED = '[removed]';

type Headers = { readonly [name: string]: number | string | readonly string[] | undefined };

/** Headers without credentials, one pair for each value. */
export function shownHeaders(headers: Headers): readonly (readonly [string, string])[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? (value as readonly string[]) : [value];
    return values.map((one) => [name, shownHeader(name, String(one ?? ''))] as const);
  });
}

function shownHeader(name: string, value: string): string {
  return isCredentialMember(name) ? REMOVED : withoutCredentialsIn(value);
}
