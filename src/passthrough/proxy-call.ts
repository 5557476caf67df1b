import type { ProxyExchange, ProxyRequest } from './proxy-exchange.ts';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { createInterimAnswerCounter } from '../http/head-limits.ts';
import { writeAnswerHead } from './answer-head.ts';
import { setHeaders } from './headers.ts';

/**
 * `answered`: nothing is left to send, or the client has disconnected. `unreachable`: nothing was
 * sent. `doubtful`: the answer was read and not passed on.
 */
export type ProxyOutcome = 'answered' | 'unreachable' | 'lost' | 'doubtful';

/** One call that is being passed through. */
export type ProxyCall = ReturnType<typeof createProxyCall>;

/**
 * How long the rest of an upload is read after its answer: to close at once would lose the answer.
 */
const DRAIN_TIMEOUT_MS = 10_000;
const MAX_SHORT_BYTES = 64 * 1024;

export function createProxyCall(
  proxyExchange: ProxyExchange,
  proxyRequest: ProxyRequest,
  connectTimeoutMs: number,
  resolve: (proxyOutcome: ProxyOutcome) => void,
) {
  const { req, res } = proxyExchange;
  let request: ClientRequest | undefined;
  let stage: 'unsent' | 'sent' | 'answering' | 'over' = 'unsent';

  function end(proxyOutcome: ProxyOutcome): void {
    if (stage === 'over') return;
    stage = 'over';
    if (proxyOutcome === 'answered') proxyExchange.respond = false;
    if (!req.complete || proxyOutcome !== 'answered' || !res.writableFinished) request?.destroy();
    req.unpipe();
    resolve(proxyOutcome);
  }
  function fail(cause?: Error): void {
    // Without a length, the client takes the end of the connection for the end of the answer. So a
    // broken answer must reset the connection.
    if (stage === 'answering' && cause) return abortAnswer();
    if (req.socket.destroyed) end('answered');
    else if (stage === 'unsent') end('unreachable');
    else if (stage === 'sent') end('lost');
  }
  function abortAnswer(): void {
    // A service that sends a forbidden body has answered all the same.
    if (res.writableEnded) return;
    if (req.httpVersion === '1.0') req.socket.resetAndDestroy();
    else res.destroy();
  }
  async function passUnlessDoubtful(
    answer: IncomingMessage,
    isDoubtful: (body: Buffer) => boolean,
  ): Promise<void> {
    stage = 'answering';
    try {
      const body = await buffer(answer);
      if (isDoubtful(body)) end('doubtful');
      else if (!res.destroyed) passAnswer(answer, Readable.from([body]));
    } catch {
      abortAnswer();
    }
  }
  function passAnswer(answer: IncomingMessage, body: Readable): void {
    if (!writeAnswerHead(res, proxyRequest, answer)) return end('lost');
    const { statusCode: status = 0, headers } = answer;
    // A client that waits for events must see the headers at once.
    // Sends the head before the body. Otherwise Node would write its bytes anew, as UTF-8.
    if (headers['content-length'] === undefined) res.write(Buffer.alloc(0));
    stage = 'answering';
    const coding = headers['content-encoding'];
    proxyRequest.observer?.onAnswer({ status, coding, body });
    body.on('error', abortAnswer);
    res.on('error', () => res.destroy());
    if (req.method === 'HEAD' || status === 204 || status === 304) res.end();
    else body.pipe(res);
  }
  // The library notices a client that disconnects only while its request is still arriving.
  if (res.destroyed) end('answered');
  else
    res.once('close', () => {
      if (stage === 'over') return;
      end('answered');
      if (res.writableFinished && !req.complete) drainRequest(req);
    });

  return {
    /** Called when the call has got a connection, a new one or one that was used before. */
    onConnection(opened: ClientRequest): void {
      request = opened;
      if (stage === 'over') return void opened.destroy();
      // The library would read `//` in a path as one slash, and would lose repeated headers.
      opened.path = proxyRequest.path;
      try {
        setHeaders(opened, proxyRequest.headers);
      } catch (cause) {
        // A key of a query may have any character.
        return void opened.destroy(cause as Error);
      }
      opened.once('close', () => fail());
      const countInterim = createInterimAnswerCounter();
      opened.on('information', () => {
        try {
          countInterim();
        } catch (cause) {
          opened.destroy(cause as Error);
        }
      });
      whenConnected(opened, connectTimeoutMs, () => {
        if (stage === 'unsent') stage = 'sent';
      });
    },
    onAnswer(answer: IncomingMessage): void {
      const { isDoubtful } = proxyRequest;
      if (stage === 'over') answer.destroy();
      else if (isDoubtful && isShort(answer)) void passUnlessDoubtful(answer, isDoubtful);
      else passAnswer(answer, answer);
    },
    fail,
  };
}

/** True for a plain answer with so few bytes that it can be read before it is passed on. */
function isShort({ statusCode, headers }: IncomingMessage): boolean {
  const isPlain = headers['content-encoding'] === undefined;
  return statusCode === 200 && isPlain && Number(headers['content-length']) <= MAX_SHORT_BYTES;
}

/** Waits for a connection before anything is sent. One that was used before is ready at once. */
function whenConnected(request: ClientRequest, timeoutMs: number, onConnected: () => void): void {
  const { socket } = request;
  if (!socket?.connecting) return onConnected();
  const timer = setTimeout(() => request.destroy(new Error('not connected in time')), timeoutMs);
  socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
    clearTimeout(timer);
    onConnected();
  });
  request.once('close', () => clearTimeout(timer));
}

function drainRequest(request: IncomingMessage): void {
  const { socket } = request;
  const timer = setTimeout(() => socket.destroySoon(), DRAIN_TIMEOUT_MS).unref();
  request.once('close', () => clearTimeout(timer));
  request.resume();
}
