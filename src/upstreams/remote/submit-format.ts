import type { SubmitRequest, V2Error } from '../../protocol/job-api.ts';
import { isJsonObject } from '../../protocol/json.ts';
import type { UpstreamCapabilities } from './capabilities.ts';
import { AUTH_TOKEN, type SubmitFormat } from './submit-body.ts';
import { hasFileRefs } from '../remote-files/file-references.ts';

type RefusedSubmission = { readonly request: SubmitRequest; readonly error: V2Error };

/** Refusals that another way of naming files would not change. */
const NOT_ABOUT_FILES = new Set([
  'idempotency_key_reuse',
  'workflow_format_ui',
  'deployment_stopped',
]);

/**
 * The next format to try for a refused submission while the upstream's formats are unknown;
 * `undefined` when the refusal is about the submission itself.
 */
export function nextFormat(
  capabilities: UpstreamCapabilities,
  format: SubmitFormat,
  { request, error }: RefusedSubmission,
): SubmitFormat | undefined {
  if (request.metadata && format.labels !== 'none' && isAboutLabels(error)) {
    const isTextWorthTrying =
      capabilities.labels === 'unknown' && error.code !== 'metadata_not_supported';
    const next = isTextWorthTrying && format.labels !== 'string' ? 'string' : 'none';
    if (next === 'none') capabilities.labels = 'none';
    return { ...format, labels: next };
  }
  if (request.extraData[AUTH_TOKEN] && format.authToken !== 'no' && isAboutSecrets(error)) {
    capabilities.authToken = 'no';
    return { ...format, authToken: 'no' };
  }
  if (namesMissingIds(error) && hasFileRefs(request) && format.assetMode !== 'string') {
    if (capabilities.assetMode === 'unknown') capabilities.assetMode = 'object';
    return undefined;
  }
  const mayUsePaths =
    error.status === 422 &&
    capabilities.assetMode === 'unknown' &&
    format.assetMode !== 'string' &&
    !NOT_ABOUT_FILES.has(error.code) &&
    hasFileRefs(request);
  return mayUsePaths ? { ...format, assetMode: 'string' } : undefined;
}

/** Remembers a format that the upstream has accepted. */
export function rememberFormat(
  capabilities: UpstreamCapabilities,
  format: SubmitFormat,
  request: SubmitRequest,
): void {
  if (request.metadata) capabilities.labels = format.labels === 'unknown' ? 'map' : format.labels;
  if (capabilities.assetMode === 'unknown' && hasFileRefs(request)) {
    capabilities.assetMode = format.assetMode === 'string' ? 'string' : 'object';
  }
}

/** A service that lists missing ids understands ids. */
function namesMissingIds({ code, details }: V2Error): boolean {
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
