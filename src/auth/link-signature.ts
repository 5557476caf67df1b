import { createHmac, timingSafeEqual } from 'node:crypto';

/** Signs the claims of one kind of link; a signature of another `kind` never fits. */
export type LinkSignature = {
  sign(claims: string): string;
  isGenuine(claims: string, signature: string): boolean;
};

export function createLinkSignature(secret: Buffer, kind: string): LinkSignature {
  const sign = (claims: string): string =>
    createHmac('sha256', secret).update(`${kind}\0${claims}`).digest('base64url');
  return { sign, isGenuine: (claims, signature) => isSameText(signature, sign(claims)) };
}

function isSameText(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
