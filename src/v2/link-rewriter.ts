import type { PublicAddress } from '../http/public-address.ts';
import type { JobEvent } from '../protocol/job-api.ts';
import type { Asset, Job } from '../protocol/v2.ts';
import { createLinkSignature } from '../auth/link-signature.ts';
import { isoTime } from '../lib/clock.ts';

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
  const signature = createLinkSignature({ ...options, kind: 'signed content' });
  return {
    sign(grant) {
      const expiresS = Math.floor(options.now() / 1000) + LIFETIME_S;
      const query = new URLSearchParams({
        user: grant.user,
        expires: String(expiresS),
        signature: signature.sign(claimsOf(grant, expiresS)),
      });
      return { query: query.toString(), expiresAt: isoTime(expiresS * 1000) };
    },
    userOf(assetId, query) {
      const user = query.get('user') ?? '';
      const claims = claimsOf({ user, assetId }, Number(query.get('expires')));
      return signature.isValid(claims, query.get('signature')) ? user : undefined;
    },
  };
}

function claimsOf({ user, assetId }: Grant, expiresS: number): URLSearchParams {
  return new URLSearchParams({ user, asset: assetId, expires: String(expiresS) });
}
