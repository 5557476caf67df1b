import type { IncomingMessage } from 'node:http';

type HeadFault = 'too_many_headers' | 'headers_too_large';

/** The address and all headers together; cookies of single sign-on take 20 KiB and more. */
const MAX_HEAD_BYTES = 64 * 1024;

/**
 * The parser reads on up to this length: a refusal needs the address, and a key, to have the form
 * that its caller reads.
 */
export const MAX_PARSED_HEAD_BYTES = 2 * MAX_HEAD_BYTES;

export const MAX_HEADERS = 200;

export const LONG_HEAD_MESSAGE = `The address and the headers together are longer than ${MAX_HEAD_BYTES} bytes.`;

/** Returns the limit that a head exceeds. */
export function headFault({ url = '', rawHeaders }: IncomingMessage): HeadFault | undefined {
  if (rawHeaders.length / 2 > MAX_HEADERS) return 'too_many_headers';
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length;
  return bytes > MAX_HEAD_BYTES ? 'headers_too_large' : undefined;
}

/** No real server sends more interim answers (`103 Early Hints`) to one request than this. */
const MAX_INTERIM_ANSWERS = 16;

export class TooManyInterimAnswers extends Error {
  override readonly name = 'TooManyInterimAnswers';
}

/** Counts the interim answers to one request. Throws at the first one above the limit. */
export function createInterimAnswerCounter(): () => void {
  let count = 0;
  return () => {
    if (++count > MAX_INTERIM_ANSWERS) {
      throw new TooManyInterimAnswers('the service sends interim answers without an end');
    }
  };
}
