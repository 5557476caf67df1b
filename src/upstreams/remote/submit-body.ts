import type { SubmitRequest } from '../../protocol/job-api.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import type { UpstreamCapabilities } from './capabilities.ts';
import { inAssetMode, namesNoFile } from '../remote-files/file-references.ts';

/** How one submission is written for one upstream. */
export type SubmitFormat = Readonly<
  Pick<UpstreamCapabilities, 'assetMode' | 'labels' | 'authToken'>
> & {
  /** Vendor fields are sent to another Holdover only: other servers refuse unknown fields. */
  readonly vendorFields: boolean;
};

/** Browser front ends send it with every prompt; some servers refuse unknown fields. */
export const AUTH_TOKEN = 'auth_token_comfy_org';

/** The body of `POST /jobs`. */
export function submitBody(request: SubmitRequest, format: SubmitFormat): string {
  const { workflow, extraData, metadata, order, provenance } = request;
  const namedWorkflow = namesNoFile(request) ? workflow : inAssetMode(workflow, format.assetMode);
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
    body['x_prompt'] = provenance.prompt;
    body['x_extra_pnginfo'] = provenance.extraPngInfo;
  }
  const text = namedWorkflow === workflow ? request.workflowJson : undefined;
  const otherMembers = stringifyJson(body).slice(1);
  return `{"workflow":${text ?? stringifyJson(namedWorkflow)}${otherMembers === '}' ? '' : ','}${otherMembers}`;
}
