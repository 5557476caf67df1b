import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Logger } from '../observability/log.ts';
import { lastAnswer } from './client-connection.ts';

/** As Node answers them. */
const STATUSES: { readonly [code: string]: number } = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Answers bytes that are no request, with an id that is in the log, and closes the connection. */
export function answerUnreadable(log: Pick<Logger, 'info'> | undefined) {
  return ({ code = '' }: NodeJS.ErrnoException, socket: Duplex): void => {
    if (!canBeAnswered(socket)) return void socket.destroy();
    const status = STATUSES[code] ?? 400;
    const id = randomUUID();
    const lines = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Connection: close',
      'Content-Length: 0',
      `X-Request-Id: ${id}`,
      'X-Content-Type-Options: nosniff',
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    (socket as Socket).destroySoon();
    const fields = { event: 'request.unreadable', id, status, reason: code };
    log?.info(fields, 'refused a request that cannot be read');
  };
}

/** False while an answer to an earlier request is on its way: the client would read this one into it. */
function canBeAnswered(socket: Duplex): boolean {
  const last = lastAnswer(socket);
  if (!socket.writable) return false;
  return last === undefined || last.closed || (last.socket === socket && !last.headersSent);
}
