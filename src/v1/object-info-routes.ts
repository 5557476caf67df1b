import type { FileStore } from '../ledger/ledger.ts';
import type { DefinitionSource, Known } from '../wire/definitions.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Encoding, encodingsFor, encodingsLastFor } from './encodings.ts';
import { V1Error, plainError, sendEmpty } from './errors.ts';
import { sendJsonText } from './json-text.ts';
import { type UserObjectInfo, createUserObjectInfo } from './object-info.ts';
import type { QuickAnswer, V1Request, V1Route } from './routes.ts';

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
        const known = await ask(source, request);
        const [encoding] = encodingsFor(ctx);
        const given = { encoding, ifNoneMatch: ctx.get('If-None-Match') };
        const { status, headers, body } = await whole(info, { known, caller, ...given });
        ctx.set(headers);
        if (body === undefined) sendEmpty(ctx, status);
        else ctx.body = body;
      },
      async quick({ headers }, caller) {
        const encodings = encodingsLastFor(String(headers['accept-encoding'] ?? ''));
        if (encodings === undefined || isDemanding(headers['cache-control'])) return undefined;
        const known = await source.known(caller);
        if (!known.ok) return undefined;
        const { 'if-none-match': ifNoneMatch = '' } = headers;
        return whole(info, { known, caller, encoding: encodings[0], ifNoneMatch });
      },
    },
    {
      method: 'GET',
      path: '/object_info/:name',
      async handle(request) {
        const { ctx, caller, params } = request;
        const known = await ask(source, request);
        ctx.set(headersOf(known));
        const served = await info.one(known.definitions, caller.user, params['name'] ?? '');
        ctx.set('ETag', served.etag);
        if (isKnown(ctx.get('If-None-Match'), served.etag)) return sendEmpty(ctx, 304);
        sendJsonText(ctx, served.body);
      },
    },
  ];
}

type Told = Known & { readonly ok: true };

type Call = {
  readonly known: Told;
  readonly caller: Caller;
  readonly encoding: Encoding | undefined;
  readonly ifNoneMatch: string;
};

/** Every class, or the news that nothing has changed. */
async function whole(info: UserObjectInfo, call: Call): Promise<QuickAnswer> {
  const { known, caller, encoding, ifNoneMatch } = call;
  const variant = await info.all(known.definitions, caller.user);
  const { etag } = variant;
  const always = { ...headersOf(known), Vary: 'Accept-Encoding' };
  if (isKnown(ifNoneMatch, etag)) {
    const ETag = encoding === undefined ? etag : etag.replace(/"$/, `-${encoding}"`);
    return { status: 304, headers: { ...always, ETag }, body: undefined };
  }
  const served = encoding === undefined ? variant : await variant.compressed(encoding);
  const headers = {
    ...always,
    ETag: served.etag,
    ...(encoding !== undefined && { 'Content-Encoding': encoding }),
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(served.body.length),
  };
  return { status: 200, headers, body: served.body };
}

/** `Cache-Control: no-cache`, as the reload of a front end sends it, asks the source once more. */
async function ask(source: DefinitionSource, { ctx, caller, query }: V1Request): Promise<Told> {
  const isDemanded = isDemanding(ctx.get('Cache-Control')) || query.get('refresh') === '1';
  const known = await (isDemanded ? source.refreshed(caller) : source.known(caller));
  if (!known.ok) throw unavailable(known.retryAfterSeconds);
  return known;
}

function isDemanding(cacheControl = ''): boolean {
  return /\bno-(cache|store)\b/i.test(cacheControl);
}

function headersOf({ isStale, isStandIn }: Told): { [name: string]: string } {
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
  const headers = { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(503, body, { headers, blames: 'job service' });
}

/** Any encoding of the same text will do. */
function isKnown(ifNoneMatch: string, etag: string): boolean {
  const known = ifNoneMatch.split(',').map((tag) =>
    tag
      .trim()
      .replace(/^W\//, '')
      .replace(/-(br|gzip)"$/, '"'),
  );
  return known.includes(etag) || known.includes('*');
}
