import type { SubmitRequest, V2Error } from '../wire/jobs.ts';
import { isJsonObject } from '../wire/json.ts';
import type { Facts } from './facts.ts';
import { AUTH_TOKEN, type Spelling } from './submit-body.ts';
import { hasFileRefs } from './workflow.ts';

type Refused = { readonly request: SubmitRequest; readonly error: V2Error };

/** Refusals that another way of naming files would not change. */
const NOT_ABOUT_FILES = new Set([
  'idempotency_key_reuse',
  'workflow_format_ui',
  'deployment_stopped',
]);

/**
 * How to write a refused submission instead, while it is not known what this upstream takes;
 * nothing when the refusal is about the submission itself.
 */
export function respell(
  facts: Facts,
  spelling: Spelling,
  { request, error }: Refused,
): Spelling | undefined {
  if (request.metadata && spelling.labels !== 'none' && isAboutLabels(error)) {
    const isTextWorthTrying = facts.labels === 'unknown' && error.code !== 'metadata_not_supported';
    const next = isTextWorthTrying && spelling.labels !== 'string' ? 'string' : 'none';
    if (next === 'none') facts.labels = 'none';
    return { ...spelling, labels: next };
  }
  if (request.extraData[AUTH_TOKEN] && spelling.authToken !== 'no' && isAboutSecrets(error)) {
    facts.authToken = 'no';
    return { ...spelling, authToken: 'no' };
  }
  if (looksUpIds(error) && hasFileRefs(request) && spelling.assetMode !== 'string') {
    if (facts.assetMode === 'unknown') facts.assetMode = 'object';
    return undefined;
  }
  const mayRename =
    error.status === 422 &&
    facts.assetMode === 'unknown' &&
    spelling.assetMode !== 'string' &&
    !NOT_ABOUT_FILES.has(error.code) &&
    hasFileRefs(request);
  return mayRename ? { ...spelling, assetMode: 'string' } : undefined;
}

/** Remembers a spelling the upstream has taken. */
export function settleSpelling(facts: Facts, spelling: Spelling, request: SubmitRequest): void {
  if (request.metadata) facts.labels = spelling.labels === 'unknown' ? 'map' : spelling.labels;
  if (facts.assetMode === 'unknown' && hasFileRefs(request)) {
    facts.assetMode = spelling.assetMode === 'string' ? 'string' : 'object';
  }
}

/** A service that says which ids are missing knows what they are. */
function looksUpIds({ code, details }: V2Error): boolean {
  const ids = isJsonObject(details) ? details['missing_ids'] : undefined;
  return code === 'missing_asset' && Array.isArray(ids) && ids.length > 0;
}

function isAboutSecrets({ status, message }: V2Error): boolean {
  return (status === 400 || status === 422) && /\bextra_data\b|auth_token/i.test(message);
}

function isAboutLabels({ status, code, message }: V2Error): boolean {
  if (code === 'metadata_not_supported' || code === 'metadata_invalid') return true;
  return (status === 400 || status === 422) && /\bmetadata\b/i.test(message);
}
