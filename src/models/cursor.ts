import { createHmac, timingSafeEqual } from 'node:crypto';

/** Page cursors: the last id of a page, signed, so that only issued cursors are accepted. */
export type Cursors = ReturnType<typeof createCursors>;

const SIGNATURE_BYTES = 16;
const MAX_CHARS = 512;

/**
 * Cursors name a position in the sort order, not an entry: they outlive changes of the catalogue.
 */
export function createCursors(secret: Buffer) {
  const sign = (id: string): Buffer =>
    createHmac('sha256', secret)
      .update(`model cursor\0${id}`)
      .digest()
      .subarray(0, SIGNATURE_BYTES);
  const write = (id: string): string =>
    `${Buffer.from(id).toString('base64url')}.${sign(id).toString('base64url')}`;
  return {
    write,
    /** The id before the next page; `undefined` when this server did not issue the cursor. */
    read(cursor: string): string | undefined {
      if (cursor.length > MAX_CHARS) return undefined;
      const id = Buffer.from(cursor.split('.', 1)[0] ?? '', 'base64url').toString();
      const expected = Buffer.from(write(id));
      const given = Buffer.from(cursor);
      return given.length === expected.length && timingSafeEqual(given, expected) ? id : undefined;
    },
  };
}
