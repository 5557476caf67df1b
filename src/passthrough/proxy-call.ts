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

/**
 * How long the rest of an upload is read after its answer: to close at once would lose the answer.
 */
const DRAIN_TIMEOUT_MS = 10_000;
const MAX_SHORT_BYTES = 64 * 1024;

/** One call that is being passed through. */
export class ProxyCall {
  readonly #exchange: ProxyExchange;
  readonly #proxyRequest: ProxyRequest;
  readonly #connectTimeoutMs: number;
  readonly #resolve: (proxyOutcome: ProxyOutcome) => void;
  #request: ClientRequest | undefined;
  #stage: 'unsent' | 'sent' | 'answering' | 'over' = 'unsent';

  constructor(
    exchange: ProxyExchange,
    proxyRequest: ProxyRequest,
    connectTimeoutMs: number,
    resolve: (proxyOutcome: ProxyOutcome) => void,
  ) {
    this.#exchange = exchange;
    this.#proxyRequest = proxyRequest;
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#resolve = resolve;
    // The library notices a client that disconnects only while its request is still arriving.
    if (exchange.res.destroyed) this.#end('answered');
    else exchange.res.once('close', () => this.#endClosed());
  }

  /** Called when the call has got a connection, a new one or one that was used before. */
  onConnection(opened: ClientRequest): void {
    this.#request = opened;
    if (this.#stage === 'over') return void opened.destroy();
    const { path, headers } = this.#proxyRequest;
    // The library would read `//` in a path as one slash, and would lose repeated headers.
    opened.path = path;
    try {
      setHeaders(opened, headers);
    } catch (cause) {
      // A key of a query may have any character.
      return void opened.destroy(cause as Error);
    }
    opened.once('close', () => this.fail());
    limitInterimAnswers(opened);
    whenConnected(opened, this.#connectTimeoutMs, () => {
      if (this.#stage === 'unsent') this.#stage = 'sent';
    });
  }

  onAnswer(answer: IncomingMessage): void {
    const { isDoubtful } = this.#proxyRequest;
    if (this.#stage === 'over') answer.destroy();
    else if (isDoubtful && isShort(answer)) void this.#passUnlessDoubtful(answer, isDoubtful);
    else this.#passAnswer(answer, answer);
  }

  fail(cause?: Error): void {
    // Without a length, the client takes the end of the connection for the end of the answer. So a
    // broken answer must reset the connection.
    if (this.#stage === 'answering' && cause) return this.#abortAnswer();
    if (this.#exchange.req.socket.destroyed) this.#end('answered');
    else if (this.#stage === 'unsent') this.#end('unreachable');
    else if (this.#stage === 'sent') this.#end('lost');
  }

  #end(proxyOutcome: ProxyOutcome): void {
    const { req, res } = this.#exchange;
    if (this.#stage === 'over') return;
    this.#stage = 'over';
    if (proxyOutcome === 'answered') this.#exchange.respond = false;
    if (!req.complete || proxyOutcome !== 'answered' || !res.writableFinished)
      this.#request?.destroy();
    req.unpipe();
    this.#resolve(proxyOutcome);
  }

  /** Ends the call whose response was closed: it is complete, or the client has disconnected. */
  #endClosed(): void {
    const { req, res } = this.#exchange;
    if (this.#stage === 'over') return;
    this.#end('answered');
    if (res.writableFinished && !req.complete) drainRequest(req);
  }

  async #passUnlessDoubtful(
    answer: IncomingMessage,
    isDoubtful: (body: Buffer) => boolean,
  ): Promise<void> {
    this.#stage = 'answering';
    try {
      const body = await buffer(answer);
      if (isDoubtful(body)) this.#end('doubtful');
      else if (!this.#exchange.res.destroyed) this.#passAnswer(answer, Readable.from([body]));
    } catch {
      this.#abortAnswer();
    }
  }

  #passAnswer(answer: IncomingMessage, body: Readable): void {
    const { req, res } = this.#exchange;
    if (!writeAnswerHead(res, this.#proxyRequest, answer)) return this.#end('lost');
    const { statusCode: status = 0, headers } = answer;
    // A client that waits for events must see the headers at once.
    // Sends the head before the body. Otherwise Node would write its bytes anew, as UTF-8.
    if (headers['content-length'] === undefined) res.write(Buffer.alloc(0));
    this.#stage = 'answering';
    const coding = headers['content-encoding'];
    this.#proxyRequest.observer?.onAnswer({ status, coding, body });
    body.on('error', () => this.#abortAnswer());
    res.on('error', () => res.destroy());
    if (req.method === 'HEAD' || status === 204 || status === 304) res.end();
    else body.pipe(res);
  }

  #abortAnswer(): void {
    const { req, res } = this.#exchange;
    // A service that sends a forbidden body has answered all the same.
    if (res.writableEnded) return;
    if (req.httpVersion === '1.0') req.socket.resetAndDestroy();
    else res.destroy();
  }
}

/** Breaks a request off that is answered with too many interim answers. */
function limitInterimAnswers(request: ClientRequest): void {
  const countInterim = createInterimAnswerCounter();
  request.on('information', () => {
    try {
      countInterim();
    } catch (cause) {
      request.destroy(cause as Error);
    }
  });
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
