import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../../observability/log.ts';
import { closingAnswer, lastAnswer, openAnswers } from '../client-connection.ts';
import { LONG_HEAD_MESSAGE } from '../head-limits.ts';
import { type DialectOf, type Refusal, type UnservedCall, earlyRefusal } from './early-refusal.ts';

/** The refusals, with the statuses of Node's own answers. */
const REFUSALS: { readonly [code: string]: Refusal } = {
  HPE_HEADER_OVERFLOW: { status: 431, message: LONG_HEAD_MESSAGE },
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
  readonly log: Logger | undefined;
  readonly dialectOf: DialectOf;
};

/**
 * Answers bytes that are not a request, with an id that the log also has, and closes the
 * connection.
 */
export function answerUnreadable({
  log,
  dialectOf,
}: UnreadableOptions): (error: ParserError, socket: Duplex) => void {
  const refused = new WeakSet<Duplex>();
  return (error, socket) => {
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
    const open = openAnswer(socket);
    if (open) open.once('close', answer);
    else answer();
  };
}

/** Returns the answer to a complete request before these bytes that has to be sent first. */
function openAnswer(socket: Duplex): ServerResponse | undefined {
  const last = lastAnswer(socket);
  if (last === undefined) return undefined;
  const isBegun = last.headersSent && !last.writableEnded;
  if (last.req.complete) return isBegun ? undefined : last;
  return last.socket === null ? openAnswers(socket).at(-2) : undefined;
}

function refusalOf({ code = '', reason = 'unknown' }: ParserError): Refusal {
  const message = `The request is not valid HTTP: ${reason}.`;
  return REFUSALS[code] ?? { status: 400, message };
}

/** A request may begin behind the body of the request before it, in the same line. */
const REQUEST_START = /([a-z-]{1,20}) {1,4}((?:\/|https?:)\S*)/i;
const HEADER_LINE = /^[\w-]+:/;

/** Returns the facts about the unreadable request that its first line shows. */
function callOf({ rawPacket, bytesParsed = 0 }: ParserError, socket: Duplex): UnservedCall {
  const last = lastAnswer(socket);
  if (last) return last.req;
  const text = rawPacket?.toString('latin1') ?? '';
  const end = text.indexOf('\n', bytesParsed);
  const lines = text.slice(0, end < 0 ? undefined : end).split(/\r?\n/);
  const line = lines.findLast((each) => !HEADER_LINE.test(each) && REQUEST_START.test(each)) ?? '';
  const [, method = '', url = ''] = REQUEST_START.exec(line) ?? [];
  const hasKey = /^x-api-key:/im.test(text);
  return { method, url, headers: hasKey ? { 'x-api-key': '' } : {} };
}

/**
 * False while an answer to an earlier request is being sent: this answer would become part of it.
 */
function canBeAnswered(socket: Duplex): boolean {
  const last = lastAnswer(socket);
  if (!socket.writable) return false;
  return last === undefined || (last.socket === socket && !last.headersSent);
}
