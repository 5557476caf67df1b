import type { SubmitRequest } from '../protocol/job-api.ts';
import type { JsonObject } from '../protocol/json.ts';
import { isCredentialMember } from '../protocol/url-credentials.ts';

export type PartnerCredentials = SubmitRequest['extraData'];

/**
 * Returns the caller's credentials for partner nodes, which are forwarded once and never stored.
 */
export function partnerCredentialsOf(extraData: JsonObject): PartnerCredentials {
  const key = extraData.api_key_comfy_org ?? extraData.api_key_service_org;
  const token = extraData.auth_token_comfy_org;
  return {
    ...(typeof key === 'string' && { api_key_comfy_org: key }),
    ...(typeof token === 'string' && { auth_token_comfy_org: token }),
  };
}

/** All spellings. */
const NAMES = [
  'api_key_comfy_org',
  'auth_token_comfy_org',
  'api_key_service_org',
  'auth_token_service_org',
];
const MAX_CREDENTIAL_BYTES = 4096;

/** Returns what is wrong with the length of a credential; `undefined` if all can be kept. */
export function longCredentialFault(extraData: JsonObject): string | undefined {
  const long = NAMES.find((name) => {
    const value = Object.hasOwn(extraData, name) ? extraData[name] : undefined;
    return typeof value === 'string' && Buffer.byteLength(value) > MAX_CREDENTIAL_BYTES;
  });
  return long && `"extra_data.${long}" is longer than ${MAX_CREDENTIAL_BYTES} bytes.`;
}

/** Returns `extra_data` as it may be stored and shown in `/queue` and `/history`. */
export function withoutSecrets(extraData: JsonObject): JsonObject {
  // A client may send 500,000 members, so a copy is made only when it differs.
  if (!Object.keys(extraData).some(isCredentialMember)) return extraData;
  return Object.fromEntries(Object.entries(extraData).filter(([key]) => !isCredentialMember(key)));
}
