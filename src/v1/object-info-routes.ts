import type Koa from 'koa';
import type { FileStore } from '../ledger/ledger.ts';
import type { DefinitionSource, Known } from '../wire/definitions.ts';
import { type Encoding, encodingsFor } from './encodings.ts';
import { V1Error, plainError, sendEmpty } from './errors.ts';
import { sendJsonText } from './json-text.ts';
import { type Served, createUserObjectInfo } from './object-info.ts';
import type { V1Request, V1Route } from './routes.ts';

/** What the definitions of node classes are told from. */
export type ObjectInfoDeps = {
  readonly definitions: DefinitionSource;
  readonly files: Pick<FileStore, 'list'>;
};

/** The node classes, all or one by its name. */
export function objectInfoRoutes({
  definitions: source,
  files,
}: ObjectInfoDeps): readonly V1Route[] {
  const info = createUserObjectInfo({ files });
  return [
    {
      method: 'GET',
      path: '/object_info',
      async handle(request) {
        const { ctx, caller } = request;
        const definitions = await ask(source, request);
        const variant = await info.all(definitions, caller.user);
        ctx.vary('Accept-Encoding');
        const [encoding] = encodingsFor(ctx);
        if (isKnown(ctx, variant.etag)) return sendUnchanged(ctx, variant.etag, encoding);
        if (encoding === undefined) return send(ctx, variant);
        ctx.set('Content-Encoding', encoding);
        send(ctx, await variant.compressed(encoding));
      },
    },
    {
      method: 'GET',
      path: '/object_info/:name',
      async handle(request) {
        const { ctx, caller, params } = request;
        const definitions = await ask(source, request);
        const served = await info.one(definitions, caller.user, params['name'] ?? '');
        if (isKnown(ctx, served.etag)) return sendUnchanged(ctx, served.etag);
        send(ctx, served);
      },
    },
  ];
}

/** `Cache-Control: no-cache`, as the reload of a front end sends it, asks the source once more. */
async function ask(source: DefinitionSource, { ctx, caller, query }: V1Request) {
  const isDemanded =
    /\bno-(cache|store)\b/i.test(ctx.get('Cache-Control')) || query.get('refresh') === '1';
  const known = await (isDemanded ? source.refreshed(caller) : source.known(caller));
  if (!known.ok) throw unavailable(known.retryAfterSeconds);
  ctx.set(headersOf(known));
  return known.definitions;
}

function headersOf({ isStale, isStandIn }: Known & { ok: true }): { [name: string]: string } {
  return {
    ...(isStandIn && { 'X-Holdover-Object-Info': 'embedded' }),
    ...(isStale && {
      'X-Holdover-Stale': '1',
      Warning: '110 holdover "Response is Stale"',
    }),
  };
}

function unavailable(retryAfterSeconds: number): V1Error {
  const body = plainError(
    'object_info_unavailable',
    'The source of node definitions cannot be asked at the moment.',
  );
  return new V1Error(503, body, { headers: { 'Retry-After': String(retryAfterSeconds) } });
}

/** Any encoding of the same text will do. */
function isKnown(ctx: Koa.Context, etag: string): boolean {
  const tags = ctx.get('If-None-Match').split(',');
  const known = tags.map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/-(br|gzip)"$/, '"'),
  );
  return known.includes(etag) || known.includes('*');
}

function sendUnchanged(ctx: Koa.Context, etag: string, encoding?: Encoding): void {
  ctx.set('ETag', encoding === undefined ? etag : etag.replace(/"$/, `-${encoding}"`));
  sendEmpty(ctx, 304);
}

function send(ctx: Koa.Context, { etag, body }: Served): void {
  ctx.set('ETag', etag);
  sendJsonText(ctx, body);
}
