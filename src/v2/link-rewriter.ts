import type { PublicAddress } from '../http/public-address.ts';
import type { JobEvent } from '../protocol/job-api.ts';
import type { Asset, Job } from '../protocol/v2.ts';
import { createLinkSignature } from '../auth/link-signature.ts';
import { isoTime } from '../engine/job-links.ts';

export interface LinkRewriter {
  readonly asset: (asset: Asset) => Asset;
  readonly job: (job: Job) => Job;
  readonly event: (event: JobEvent) => JobEvent;
}

type LinkedFile = { readonly id: string; readonly url: string; readonly url_expires_at: string };

/**
 * Turns the links of the port into those that a caller gets. A file's `url` is a URI in the
 * contract, and the official Python client accepts nothing less. A job's own links may be relative
 * to the host.
 */
export function createLinkRewriter(options: {
  /** The base URL of this caller's requests; `undefined` when the request names no host. */
  readonly address: PublicAddress | undefined;
  /** Signs a link to the bytes of an asset that the caller owns. */
  readonly sign?: ((assetId: string) => { query: string; expiresAt: string }) | undefined;
}): LinkRewriter {
  const { address, sign } = options;
  const link = (url: string): string =>
    absolute(url, address?.isStated === true ? address.base : undefined);
  const linked = <T extends LinkedFile>(file: T): T => {
    if (!isHostRelative(file.url)) return file;
    const url = absolute(file.url, address?.base);
    const signed = sign?.(file.id);
    if (signed === undefined) return { ...file, url };
    return { ...file, url: `${url}?${signed.query}`, url_expires_at: signed.expiresAt };
  };
  return {
    asset: (asset) => linked(asset),
    job: (job) => ({
      ...job,
      outputs: job.outputs.map(linked),
      urls: {
        self: link(job.urls.self),
        events: link(job.urls.events),
        cancel: link(job.urls.cancel),
      },
    }),
    event: (event) => (event.event === 'output' ? { ...event, data: linked(event.data) } : event),
  };
}

/** `//host/…` names another host: such a link is complete already. */
function isHostRelative(url: string): boolean {
  return url.startsWith('/') && !url.startsWith('//');
}

function absolute(url: string, base: string | undefined): string {
  return base !== undefined && isHostRelative(url) ? base + url : url;
}

/** The user and the asset that a signed link gives access to. */
type Grant = { readonly user: string; readonly assetId: string };

/**
 * Signs and checks links to the bytes of assets. Such a link carries its own authorization instead
 * of a key.
 */
export type ContentSigner = {
  /**
   * Returns the query of a link that works until it expires, and the time of expiry as v2 writes
   * it.
   */
  sign(grant: Grant): { readonly query: string; readonly expiresAt: string };
  /** Returns the user for whom a link was made; `undefined` when it was altered or has expired. */
  userOf(assetId: string, query: URLSearchParams): string | undefined;
};

/** The contract says "at most an hour": an old link found in a history or a log opens nothing. */
const LIFETIME_S = 60 * 60;

/**
 * `secret` belongs to the data folder or the shared ledger, so links outlive restarts and work at
 * every server.
 */
export function createContentSigner(options: {
  readonly secret: Buffer;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}): ContentSigner {
  const { now } = options;
  const signature = createLinkSignature(options.secret, 'signed content');
  return {
    sign(grant) {
      const expiresS = Math.floor(now() / 1000) + LIFETIME_S;
      const shown = { user: grant.user, expires: String(expiresS) };
      const query = new URLSearchParams({
        ...shown,
        signature: signature.sign(claimsOf(grant, expiresS)),
      });
      return { query: query.toString(), expiresAt: isoTime(expiresS * 1000) };
    },
    userOf(assetId, query) {
      const user = query.get('user') ?? '';
      const expiresS = Number(query.get('expires'));
      const claims = claimsOf({ user, assetId }, expiresS);
      const isGenuine = signature.isGenuine(claims, query.get('signature') ?? '');
      return isGenuine && now() < expiresS * 1000 ? user : undefined;
    },
  };
}

function claimsOf({ user, assetId }: Grant, expiresS: number): string {
  return new URLSearchParams({ user, asset: assetId, expires: String(expiresS) }).toString();
}
