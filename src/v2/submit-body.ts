import type { SubmitRequest } from '../wire/jobs.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { Facts } from './facts.ts';
import { inAssetMode, namesNoFile } from './workflow.ts';

/** How one submission is written for one upstream. */
export type Spelling = {
  readonly assetMode: Facts['assetMode'];
  readonly labels: Facts['labels'];
  readonly authToken: Facts['authToken'];
  /** Vendor fields go to another Holdover only: others refuse what they do not know. */
  readonly vendorFields: boolean;
};

/** Browser front ends send it with every prompt; some servers refuse all they do not know. */
export const AUTH_TOKEN = 'auth_token_comfy_org';

/** The body of `POST /jobs`. */
export function submitBody(request: SubmitRequest, spelling: Spelling): string {
  const { workflow, extraData, metadata, order, provenance } = request;
  const named = namesNoFile(request) ? workflow : inAssetMode(workflow, spelling.assetMode);
  const body: { [name: string]: Json } = {};
  const secrets = Object.entries(extraData).filter(
    ([name, secret]) =>
      secret !== undefined && (name !== AUTH_TOKEN || spelling.authToken !== 'no'),
  );
  if (secrets.length > 0) body['extra_data'] = Object.fromEntries(secrets);
  if (metadata && spelling.labels !== 'none') {
    body['metadata'] = spelling.labels === 'string' ? JSON.stringify(metadata) : metadata;
  }
  if (spelling.vendorFields && order !== undefined) body['x_order'] = order;
  if (spelling.vendorFields && provenance) {
    body['x_prompt'] = provenance.prompt;
    body['x_extra_pnginfo'] = provenance.extraPngInfo;
  }
  const text = named === workflow ? request.workflowJson : undefined;
  const rest = stringifyJson(body).slice(1);
  return `{"workflow":${text ?? stringifyJson(named)}${rest === '}' ? '' : ','}${rest}`;
}
