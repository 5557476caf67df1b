import { type IncomingMessage, ServerResponse } from 'node:http';

const DISPOSITION = 'Content-Disposition';
const LENGTH = 'Content-Length';

/**
 * The answer to a request. It is private unless its handler says more, and its headers are sent
 * byte by byte as they were set.
 *
 * Node refuses a header with a control character. But it decodes a `Content-Disposition` as UTF-8
 * once it knows the length of the body (nodejs/node#46528), and then sends the low byte of each
 * character, which may be a line feed. So its length comes last, and the head before the body.
 */
export class Answer<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  /** `rest`: reason and headers, each of which may be absent. */
  override writeHead(status: number, ...rest: unknown[]): this {
    if (!this.hasHeader('Cache-Control'))
      this.setHeader(
        'Cache-Control',
        privateCaching((name) => this.hasHeader(name)),
      );
    const length = this.getHeader(LENGTH);
    if (length !== undefined && this.hasHeader(DISPOSITION)) {
      this.removeHeader(LENGTH);
      this.setHeader(LENGTH, length);
    }
    return super.writeHead(status, ...(rest as []));
  }

  override end(...[chunk, ...rest]: unknown[]): this {
    const isBody = typeof chunk === 'string' || chunk instanceof Uint8Array;
    if (!isBody || this.headersSent || !this.hasHeader(DISPOSITION))
      return super.end(chunk, ...(rest as []));
    this.writeHead(this.statusCode);
    // Node would send the head in the encoding of a text.
    return super.end(typeof chunk === 'string' ? Buffer.from(chunk) : chunk, ...(rest as []));
  }
}

/** Returns a class of answers that call this in the turn that writes their head, after it is written. */
export function observedAnswer(onAnswered: (request: IncomingMessage) => void): typeof Answer {
  return class<Request extends IncomingMessage> extends Answer<Request> {
    override writeHead(status: number, ...rest: unknown[]): this {
      process.nextTick(onAnswered, this.req);
      return super.writeHead(status, ...rest);
    }
  };
}

/**
 * Returns the `Cache-Control` of an answer that no shared cache may hand to another caller: its own
 * caller's cache asks again where the answer has a validator, and does not store it elsewhere.
 */
export function privateCaching(hasHeader: (name: string) => boolean): string {
  const hasValidator = hasHeader('ETag') || hasHeader('Last-Modified');
  return hasValidator ? 'private, no-cache' : 'private, no-store';
}

const EXPOSED_HEADERS = 'Access-Control-Expose-Headers';

/** Lists headers for pages: in CORS mode a page may read only these. */
export function exposeHeaders(res: ServerResponse, names: () => readonly string[]): void {
  const exposed = res.getHeader(EXPOSED_HEADERS);
  if (typeof exposed === 'string') res.setHeader(EXPOSED_HEADERS, [exposed, ...names()].join(', '));
}
