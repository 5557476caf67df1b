import { createHmac, timingSafeEqual } from 'node:crypto';

/** Signs the claims of one kind of link. A signature of another `kind` is never valid. */
export function createLinkSignature(secret: Buffer, kind: string) {
  const sign = (claims: string): string =>
    createHmac('sha256', secret).update(`${kind}\0${claims}`).digest('base64url');
  const isGenuine = (claims: string, signature: string): boolean =>
    isSameText(signature, sign(claims));
  return { sign, isGenuine };
}

function isSameText(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
