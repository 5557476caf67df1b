import { createHmac } from 'node:crypto';
import { areEqualSecrets } from './identity.ts';

type SignatureOptions = {
  readonly secret: Buffer;
  /** A signature of another kind of link is never valid. */
  readonly kind: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

type LinkSignature = {
  sign(claims: URLSearchParams): string;
  /** True when these claims were signed, and have not expired. */
  isValid(claims: URLSearchParams, signature: string | null): boolean;
};

/** Signs the claims of links, which name in `expires` the second until which the link works. */
export function createLinkSignature({ secret, kind, now }: SignatureOptions): LinkSignature {
  const sign = (claims: URLSearchParams): string =>
    createHmac('sha256', secret).update(`${kind}\0${claims.toString()}`).digest('base64url');
  return {
    sign,
    isValid: (claims, signature) =>
      areEqualSecrets(signature ?? '', sign(claims)) &&
      now() < Number(claims.get('expires')) * 1000,
  };
}
