import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../observability/log.ts';
import { closingAnswer, lastAnswer } from '../client-connection.ts';
import { type DialectOf, type UnservedCall, earlyRefusal } from './early-refusal.ts';

type Refusal = { readonly status: number; readonly message: string };

/** The refusals, with the statuses of Node's own answers. */
const REFUSALS: { readonly [code: string]: Refusal } = {
  HPE_HEADER_OVERFLOW: { status: 431, message: 'The address or the headers are too long.' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, message: 'An extension of a chunk is too long.' },
  HPE_INVALID_EOF_STATE: { status: 400, message: 'The request was cut off.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, message: 'The headers did not come in time.' },
};

/** An error of Node's parser. */
type ParserError = NodeJS.ErrnoException & {
  readonly reason?: string;
  /** The bytes that the parser read last. */
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

type UnreadableOptions = {
  readonly log: Pick<Logger, 'info'> | undefined;
  readonly dialectOf: DialectOf;
};

/**
 * Answers bytes that are not a request, with an id that the log also has, and closes the
 * connection.
 */
export function answerUnreadable({ log, dialectOf }: UnreadableOptions) {
  const refused = new WeakSet<Duplex>();
  return (error: ParserError, socket: Duplex): void => {
    // The parser fails again at each further chunk.
    if (refused.has(socket)) return;
    refused.add(socket);
    const answer = (): void => {
      if (!canBeAnswered(socket)) return void socket.destroy();
      const refusal = refusalOf(error);
      const id = randomUUID();
      const { headers, body } = earlyRefusal(callOf(error, socket), refusal, dialectOf);
      const own = { 'X-Content-Type-Options': 'nosniff', 'X-Request-Id': id, ...headers };
      socket.write(closingAnswer(refusal.status, own, body));
      (socket as Socket).destroySoon();
      const fields = {
        event: 'request.unreadable',
        id,
        status: refusal.status,
        reason: error.code,
      };
      log?.info(fields, 'refused a request that cannot be read');
    };
    const last = lastAnswer(socket);
    // These bytes came behind a complete request, which is answered first.
    const isRequestWhole = last?.req.complete === true && !last.headersSent && !last.closed;
    if (isRequestWhole) last.once('close', answer);
    else answer();
  };
}

function refusalOf({ code = '', reason = 'unknown' }: ParserError): Refusal {
  const message = `The request is not valid HTTP: ${reason}.`;
  return REFUSALS[code] ?? { status: 400, message };
}

const REQUEST_LINE = /^([a-z-]+) +((?:\/|https?:)\S*)/i;

/** Returns the facts about the unreadable request that its first line shows. */
function callOf({ rawPacket, bytesParsed = 0 }: ParserError, socket: Duplex): UnservedCall {
  const last = lastAnswer(socket);
  if (last && !last.closed) return last.req;
  const text = rawPacket?.toString('latin1') ?? '';
  const end = text.indexOf('\n', bytesParsed);
  const lines = text.slice(0, end < 0 ? undefined : end).split(/\r?\n/);
  const line = lines.findLast((each) => REQUEST_LINE.test(each)) ?? '';
  const [, method = '', url = ''] = REQUEST_LINE.exec(line) ?? [];
  const hasKey = /^x-api-key:/im.test(text);
  return { method, url, headers: hasKey ? { 'x-api-key': '' } : {} };
}

/**
 * False while an answer to an earlier request is being sent: this answer would become part of it.
 */
function canBeAnswered(socket: Duplex): boolean {
  const last = lastAnswer(socket);
  if (!socket.writable) return false;
  return last === undefined || last.closed || (last.socket === socket && !last.headersSent);
}
