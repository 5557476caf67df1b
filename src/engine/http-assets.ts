import { receiveMultipart } from '../multipart.ts';
import { type Result, ok } from '../wire/jobs.ts';
import type { Json } from '../wire/json.ts';
import type { Asset } from '../wire/v2.ts';
import { readIdempotencyKey, readObject, refuseBody } from './http-body.ts';
import { sendContent } from './http-content.ts';
import type { Links } from './http-links.ts';
import type { Handler, Reply, V2Deps } from './http-reply.ts';
import { readFromHash, readUpload } from './http-upload.ts';

/** Tags come as repeated fields. */
const MAX_FORM_FIELDS = 64;

/** The asset half of the contract, by operation. */
export function createAssetHandlers(deps: V2Deps): { readonly [name in AssetOperation]: Handler } {
  const { jobs, spoolDir, maxUploadBytes, bodies } = deps;
  const minted = (asset: Result<Asset>, links: Links): Result<Reply> => {
    if (!asset.ok) return asset;
    const status = asset.value.created_new === false ? 200 : 201;
    return ok({ status, json: links.asset(asset.value) as Json });
  };
  return {
    async upload({ ctx, caller, links }) {
      const key = readIdempotencyKey(ctx);
      if (!key.ok) return key;
      const limits = { dir: spoolDir, maxFileBytes: maxUploadBytes, maxFields: MAX_FORM_FIELDS };
      const form = await receiveMultipart(ctx.req, limits);
      if (!form.ok) {
        ctx.set('Connection', 'close');
        return refuseBody(form);
      }
      const upload = await readUpload(form.value);
      if (!upload.ok) return upload;
      return minted(await jobs.createAsset(caller, { ...upload.value, ...key.value }), links);
    },
    async fromHash({ ctx, caller, links }) {
      const key = readIdempotencyKey(ctx);
      if (!key.ok) return key;
      const body = await readObject(ctx, bodies);
      if (!body.ok) return body;
      const request = readFromHash(body.value);
      if (!request.ok) return request;
      const keyed = { ...request.value, ...key.value };
      return minted(await jobs.assetFromHash(caller, keyed), links);
    },
    async byHash({ caller, params: { hash = '' } }) {
      const known = await jobs.hasBlob(caller, hash);
      return known.ok ? ok({ status: known.value ? 200 : 404 }) : known;
    },
    async get({ caller, params: { id = '' }, links }) {
      const asset = await jobs.asset(caller, id);
      return asset.ok ? ok({ status: 200, json: links.asset(asset.value) as Json }) : asset;
    },
    async remove({ caller, params: { id = '' } }) {
      const removed = await jobs.deleteAsset(caller, id);
      return removed.ok ? ok({ status: 204 }) : removed;
    },
    content: (request) => sendContent(jobs, request),
  };
}

type AssetOperation = 'upload' | 'fromHash' | 'byHash' | 'get' | 'remove' | 'content';
