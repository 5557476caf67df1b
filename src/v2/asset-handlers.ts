import { withReceivedForm } from '../http/received-form.ts';
import { type Result, type V2Error, ok, refuse } from '../protocol/job-api.ts';
import type { Asset } from '../protocol/v2.ts';
import { readIdempotencyKey, readObject, refuseBody } from './read-body.ts';
import { sendContent } from './send-content.ts';
import { type Handler, type Handlers, type V2RouteOptions, replyWith } from './reply.ts';
import { readFromHash, readUpload } from './read-upload.ts';

/** The maximum number of form fields. Tags are sent as repeated fields. */
const MAX_FORM_FIELDS = 64;

/** The handlers of the asset operations, by the names of their routes. */
export function createAssetHandlers(options: V2RouteOptions): Handlers {
  const { jobs, bodies } = options;
  return {
    'POST /assets': createUploadHandler(options),
    async 'POST /assets/from-hash'({ ctx, caller, links }) {
      const key = readIdempotencyKey(ctx);
      if (!key.ok) return key;
      const body = await readObject(ctx, bodies);
      if (!body.ok) return asBlobNotFound(body);
      const request = readFromHash(body.value);
      if (!request.ok) return asBlobNotFound(request);
      const keyed = { ...request.value, ...key.value };
      const created = await jobs.assetFromHash(caller, keyed);
      // 201: "Asset minted over the existing blob." `created_new` is false: it speaks of the blob.
      return created.ok ? replyWith(created, links.asset, 201) : asBlobNotFound(created);
    },
    async 'HEAD /assets/by-hash/:hash'({ caller, params: { hash = '' } }) {
      const exists = await jobs.hasBlob(caller, hash);
      return exists.ok ? ok({ status: exists.value ? 200 : 404 }) : exists;
    },
    'GET /assets/:id': async ({ caller, params: { id = '' }, links }) =>
      replyWith(await jobs.asset(caller, id), links.asset),
    async 'DELETE /assets/:id'({ caller, params: { id = '' } }) {
      const removed = await jobs.deleteAsset(caller, id);
      return removed.ok ? ok({ status: 204 }) : removed;
    },
    'GET /assets/:id/content': (request) => sendContent(jobs, request),
  };
}

function createUploadHandler({ jobs, uploads }: V2RouteOptions): Handler {
  return async ({ ctx, caller, links }) => {
    const key = readIdempotencyKey(ctx);
    if (!key.ok) return key;
    const created = await withReceivedForm<Result<Asset>>(
      uploads,
      { ctx, caller },
      {
        maxFields: MAX_FORM_FIELDS,
        onRefused(refusal) {
          ctx.set('Connection', 'close');
          return refuseBody(refusal);
        },
        async work(form) {
          const upload = readUpload(form);
          if (!upload.ok) return upload;
          return await jobs.createAsset(caller, { ...upload.value, ...key.value });
        },
      },
    );
    const isKnown = created.ok && created.value.created_new === false;
    return replyWith(created, links.asset, isKnown ? 200 : 201);
  };
}

/**
 * Turns the refusal of a request that names no bytes into "not found": the contract documents no
 * 422 here.
 */
function asBlobNotFound<T>(refused: { readonly ok: false; readonly error: V2Error }): Result<T> {
  const { code, message } = refused.error;
  return code === 'invalid_request' ? refuse(404, 'blob_not_found', message) : refused;
}
