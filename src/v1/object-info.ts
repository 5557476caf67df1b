import { isBrowser, isOwnCall, isPageCall } from '../auth/calling-client.ts';
import type {
  DefinitionSource,
  Definitions,
  DefinitionsResult,
} from '../definitions/definitions.ts';
import { encodingsFor } from '../http/content-encoding.ts';
import { V1Error, plainError, sendEmpty } from '../dialects/errors.ts';
import { sendJsonText } from '../http/json-stream.ts';
import type { UserObjectInfo } from '../definitions/user-object-info.ts';
import { type V1Request, routesFor } from './routes.ts';

/** Services of the `/object_info` routes. */
type ObjectInfoServices = {
  readonly definitions: DefinitionSource;
  readonly userObjectInfo: UserObjectInfo;
};

/** The routes of the node classes: all of them, or one by its name. */
export const objectInfoRoutes = routesFor<ObjectInfoServices>({
  /** Sends every class, or 304 when the client's copy is current. */
  async 'GET /object_info'({ definitions: source, userObjectInfo }, request) {
    const { ctx, caller } = request;
    const known = await fetchDefinitions(source, request);
    const definitions = shownDefinitions(known, ctx);
    const [encoding] = encodingsFor(ctx);
    const { etag, body } = await userObjectInfo.everyClass(definitions, caller.user, encoding);
    ctx.set({ ...headersOf(known), ETag: etag });
    ctx.set('Vary', known.forPrograms ? VARIES_BY : 'Accept-Encoding');
    if (matchesEtag(ctx.get('If-None-Match'), etag)) return sendEmpty(ctx, 304);
    if (encoding !== undefined) ctx.set('Content-Encoding', encoding);
    sendJsonText(ctx, await body());
  },
  async 'GET /object_info/:name'({ definitions: source, userObjectInfo }, request) {
    const { ctx, caller, params } = request;
    const known = await fetchDefinitions(source, request);
    ctx.set(headersOf(known));
    const shown = known.forPrograms ?? known.definitions;
    const { name = '' } = params;
    const { etag, body } = await userObjectInfo.oneClass(shown, caller.user, name);
    ctx.set('ETag', etag);
    if (matchesEtag(ctx.get('If-None-Match'), etag)) return sendEmpty(ctx, 304);
    sendJsonText(ctx, await body());
  },
});

/**
 * Returns the definitions to show. Front ends, and a Holdover in front of this one, offer every
 * class that is listed, so they get those that run.
 */
function shownDefinitions(
  { definitions, forPrograms }: Available,
  { req }: V1Request['ctx'],
): Definitions {
  const isOffered = isPageCall(req) || isBrowser(req) || isOwnCall(req);
  return isOffered ? definitions : (forPrograms ?? definitions);
}

const VARIES_BY = 'Accept-Encoding, User-Agent, Sec-Fetch-Site, Sec-Fetch-Dest, Comfy-User';

type Available = DefinitionsResult & { readonly ok: true };

/**
 * Reads the definitions. `Cache-Control: no-cache`, which a front end sends on reload, asks the
 * source once more.
 */
async function fetchDefinitions(
  source: DefinitionSource,
  { ctx, caller, query }: V1Request,
): Promise<Available> {
  const isFreshDemanded =
    /\bno-(cache|store)\b/i.test(ctx.get('Cache-Control')) || query.get('refresh') === '1';
  const known = await (isFreshDemanded ? source.refreshed(caller) : source.current(caller));
  if (!known.ok) throw unavailableError(known.retryAfterSeconds);
  return known;
}

function headersOf({ isStale, isEmbeddedFallback }: Available): { [name: string]: string } {
  return {
    ...(isEmbeddedFallback && { 'X-Holdover-Object-Info': 'embedded' }),
    ...(isStale && {
      'X-Holdover-Stale': '1',
      Warning: '110 holdover "Response is Stale"',
    }),
  };
}

function unavailableError(retryAfterSeconds: number): V1Error {
  const body = plainError(
    'object_info_unavailable',
    'The source of node definitions cannot be asked at the moment.',
  );
  const headers = { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(503, body, { headers, blames: 'job service' });
}

/** True when the ETag matches. The encoding of the text does not matter. */
function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  const known = ifNoneMatch.split(',').map((tag) => withoutEncoding(tag.trim()));
  return known.includes(withoutEncoding(etag)) || known.includes('*');
}

function withoutEncoding(etag: string): string {
  return etag.replace(/^W\//, '').replace(/-(br|gzip)"$/, '"');
}
