import { gunzipSync, brotliDecompressSync } from 'node:zlib';
import { V1Error, plainError } from '../dialects/errors.ts';
import type { SecretRedactor } from '../observability/secret-redactor.ts';
import { stringifyJson, type Json } from '../protocol/json.ts';
import { withoutCredentialsIn } from '../protocol/url-credentials.ts';
import type { TrafficBody, TrafficDetail } from './api-types.ts';
import { type CapturedBody, MAX_BODY_BYTES, bytesOf, isCut } from './traffic/captured-body.ts';
import { type ConsoleHandlers, type ConsoleRequest, requireOperator } from './console-routes.ts';
import { differenceRows } from './differences.ts';
import { multipartText } from './traffic/multipart-text.ts';
import type { RecordedEntry, TrafficScope, TrafficStore } from './traffic-store.ts';

type TrafficServices = {
  readonly store: TrafficStore;
  readonly secrets: Pick<SecretRedactor, 'redact'>;
};

/** The inspector: callers see their own traffic; `scope=all` is for the operator. */
export function trafficHandlers({ store, secrets }: TrafficServices): ConsoleHandlers {
  /** The last of the filters: no secret that is known by now leaves. */
  function send({ ctx }: ConsoleRequest, body: object): undefined {
    ctx.status = 200;
    ctx.set('Content-Type', 'application/json; charset=utf-8');
    ctx.body = secrets.redact(stringifyJson(body as Json));
    return undefined;
  }

  function find(request: ConsoleRequest): RecordedEntry {
    const found = store.find(Number(request.query.get('id')), scopeOf(request));
    if (found) return found;
    throw new V1Error(404, plainError('not_found', 'This entry is gone.'));
  }

  return {
    async 'GET traffic'(request) {
      const scope = scopeOf(request);
      store.hold(scope);
      return send(request, store.changedAfter(afterOf(request, store.server), scope));
    },
    async 'POST traffic/close'(request) {
      store.release(scopeOf(request));
      return send(request, {});
    },
    async 'POST traffic/clear'(request) {
      requireOperator(request.access);
      store.clear();
      return send(request, {});
    },
    'GET traffic/entry': async (request) =>
      send(request, detailOf(find(request), scopeOf(request))),
    async 'GET traffic/picture'(request) {
      const recorded = find(request);
      const body = recorded.response ?? recorded.request;
      if (recorded.entry.picture === undefined || body === undefined || isCut(body)) {
        throw new V1Error(404, plainError('not_found', 'There is no picture.'));
      }
      request.ctx.status = 200;
      // The page knows its type; no other reader shall show it.
      request.ctx.set('Content-Type', 'application/octet-stream');
      request.ctx.body = bytesOf(body);
      return undefined;
    },
  };
}

function scopeOf({ caller, access, query }: ConsoleRequest): TrafficScope {
  const isAll = query.get('scope') === 'all';
  if (isAll) requireOperator(access);
  return { user: caller.user, isAll };
}

/** `after` names a revision of each server that was asked: `a1b2.17,c3d4.5`. */
function afterOf({ query }: ConsoleRequest, server: string): number {
  const known = (query.get('after') ?? '').split(',').find((one) => one.startsWith(`${server}.`));
  return Number(known?.slice(server.length + 1) ?? 0) || 0;
}

function detailOf(recorded: RecordedEntry, { user }: TrafficScope): TrafficDetail {
  const { entry, requestHeaders = [], responseHeaders = [] } = recorded;
  const encoding = responseHeaders.find(([name]) => name === 'content-encoding')?.[1];
  return {
    entry: { ...entry, is_other_user: recorded.user !== user },
    request_headers: requestHeaders,
    response_headers: responseHeaders,
    request: shownBody(recorded.request, recorded.requestType, undefined),
    response: shownBody(recorded.response, recorded.responseType, encoding),
    differences: differenceRows(entry.differences ?? []),
  };
}

function shownBody(
  body: CapturedBody | undefined,
  contentType = '',
  encoding: string | undefined,
): TrafficBody | null {
  if (body === undefined || body.totalBytes === 0) return null;
  const facts = { content_type: contentType, bytes: body.totalBytes, is_cut: isCut(body) };
  if (contentType.startsWith('multipart/')) {
    return {
      ...facts,
      text: withoutCredentialsIn(multipartText(bytesOf(body), contentType)),
      note: null,
    };
  }
  if (!isText(contentType)) return { ...facts, text: null, note: null };
  const bytes = encoding === undefined ? bytesOf(body) : unpacked(body, encoding);
  if (bytes === undefined) return { ...facts, text: null, note: `compressed with ${encoding}` };
  return { ...facts, text: withoutCredentialsIn(bytes.toString('utf8')), note: null };
}

function unpacked(body: CapturedBody, encoding: string): Buffer | undefined {
  if (isCut(body)) return undefined;
  const limits = { maxOutputLength: 64 * MAX_BODY_BYTES };
  try {
    const bytes = bytesOf(body);
    const text =
      encoding === 'br' ? brotliDecompressSync(bytes, limits) : gunzipSync(bytes, limits);
    return text.subarray(0, 8 * MAX_BODY_BYTES);
  } catch {
    return undefined;
  }
}

/** A body without a type is text: v1 clients send JSON without one. */
function isText(contentType: string): boolean {
  return contentType === '' || /json|^text\/|xml|urlencoded|event-stream/.test(contentType);
}
