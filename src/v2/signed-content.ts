import { createLinkSignature } from '../auth/link-signature.ts';
import { isoTime } from '../upstreams/job-links.ts';

/** An asset's bytes as a link grants them. */
type Grant = { readonly user: string; readonly assetId: string };

/** Signs and checks links to assets' bytes that carry their own authorization instead of a key. */
export type ContentSigner = {
  /** The query of a link that works until it expires, and that moment as v2 writes it. */
  sign(grant: Grant): { readonly query: string; readonly expiresAt: string };
  /** The user for whom a link was made; `undefined` when it was altered or has expired. */
  userOf(assetId: string, query: URLSearchParams): string | undefined;
};

/** "At most an hour": an old link found in a history or a log opens nothing. */
const LIFETIME_S = 60 * 60;

/** `secret` is that of the data folder or the shared ledger: links outlive restarts, at every replica. */
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
