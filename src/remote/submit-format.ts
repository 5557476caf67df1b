import { errorCodeOf } from '../protocol/error-codes.ts';
import type { SubmitRequest, V2Error } from '../protocol/job-api.ts';
import { isJsonObject, type Json, stringifyJson } from '../protocol/json.ts';
import type { UpstreamCapabilities } from './capabilities.ts';
import { hasFileRefs, inAssetMode } from './files/file-references.ts';

/** How one submission is written for one upstream. */
export type SubmitFormat = Readonly<
  Pick<UpstreamCapabilities, 'assetMode' | 'labels' | 'authToken'>
> & {
  /**
   * True when vendor fields are sent: only another Holdover accepts them, other servers refuse
   * unknown fields.
   */
  readonly vendorFields: boolean;
};

/** Browser front ends send it with every prompt, but some servers refuse unknown fields. */
const AUTH_TOKEN = 'auth_token_comfy_org';

/** Returns the body of `POST /jobs`. */
export function submitBody(request: SubmitRequest, format: SubmitFormat): string {
  const { workflow, extraData, metadata, order, provenance } = request;
  const namedWorkflow = inAssetMode(workflow, format.assetMode);
  const body: { [name: string]: Json } = {};
  const secrets = Object.entries(extraData).filter(
    ([name, secret]) => secret !== undefined && (name !== AUTH_TOKEN || format.authToken !== 'no'),
  );
  if (secrets.length > 0) body['extra_data'] = Object.fromEntries(secrets);
  if (metadata && format.labels !== 'none') {
    body['metadata'] = format.labels === 'string' ? JSON.stringify(metadata) : metadata;
  }
  if (format.vendorFields && order !== undefined) body['x_order'] = order;
  if (format.vendorFields && provenance) {
    const { prompt, extraPngInfo } = provenance;
    // Without this member, a Holdover uses the workflow as the prompt.
    if (prompt !== namedWorkflow) body['x_prompt'] = prompt;
    if (extraPngInfo !== null) body['x_extra_pnginfo'] = extraPngInfo;
  }
  const text = namedWorkflow === workflow ? request.workflowJson : undefined;
  const otherMembers = stringifyJson(body).slice(1);
  return `{"workflow":${text ?? stringifyJson(namedWorkflow)}${otherMembers === '}' ? '' : ','}${otherMembers}`;
}

type RefusedSubmission = { readonly request: SubmitRequest; readonly error: V2Error };

/**
 * Returns the next format for a refused submission while the upstream's formats are unknown;
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
    return { ...format, labels: next };
  }
  if (request.extraData[AUTH_TOKEN] && format.authToken !== 'no' && isAboutSecrets(error)) {
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
    errorCodeOf(error.code)?.isNotAboutFiles !== true &&
    hasFileRefs(request);
  return mayUsePaths ? { ...format, assetMode: 'string' } : undefined;
}

/**
 * Records a format that the upstream has accepted. A refusal proves nothing: the workflow may
 * contain `metadata`, too.
 */
export function rememberFormat(
  capabilities: UpstreamCapabilities,
  format: SubmitFormat,
  request: SubmitRequest,
): void {
  if (request.metadata) capabilities.labels = format.labels === 'unknown' ? 'map' : format.labels;
  if (format.authToken === 'no') capabilities.authToken = 'no';
  if (capabilities.assetMode === 'unknown' && hasFileRefs(request)) {
    capabilities.assetMode = format.assetMode === 'string' ? 'string' : 'object';
  }
}

/** True when a service lists missing ids: it understands ids. */
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
