import { STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import { createInterimAnswerCounter } from '../interim-answers.ts';
import type { ProxyOutcome } from './proxy-call.ts';
import type { ProxyRequest, ProxyExchange, BodyCopy } from './proxy-exchange.ts';
import { writeAnswerHead, flushHead } from './answer-head.ts';
import type { RawHeaders } from './headers.ts';

type Options = {
  readonly exchange: ProxyExchange;
  readonly order: ProxyRequest;
  readonly silenceMs: number;
  /** True while a connection is being reset. */
  readonly connectionError: { readonly isCurrent: boolean };
  readonly resolve: (outcome: ProxyOutcome) => void;
};

/** Writes an answer to the client as it arrives. */
export function createFastCall(options: Options): Dispatcher.DispatchHandler {
  const { exchange, order, silenceMs, connectionError, resolve } = options;
  const { req, res } = exchange;
  let stage: 'unsent' | 'sent' | 'answering' | 'over' = 'unsent';
  let dispatchController: Dispatcher.DispatchController | undefined;
  let bodyCopy: BodyCopy | undefined;
  const countInterim = createInterimAnswerCounter();
  /** The bytes of the body that are still to come; NaN when the length is unknown. */
  let bytesLeft = Number.NaN;
  let drainTimer: NodeJS.Timeout | undefined;
  let lastChunk: Buffer | undefined;

  function end(outcome: ProxyOutcome): void {
    if (stage === 'over') return;
    stage = 'over';
    clearTimeout(drainTimer);
    if (outcome === 'answered') exchange.respond = false;
    if (!res.writableFinished) dispatchController?.abort(new Error('the call is over'));
    resolve(outcome);
  }
  function abortAnswer(): void {
    bodyCopy?.end('cut off');
    if (res.writableEnded) return;
    if (req.httpVersion === '1.0') req.socket.resetAndDestroy();
    else res.destroy();
  }
  /**
   * Pauses until the client reads. A client that does not read has the same time limit as the
   * service.
   */
  function pauseUntilDrained(): void {
    dispatchController?.pause();
    if (!drainTimer) res.on('drain', resume);
    drainTimer = setTimeout(() => res.destroy(), silenceMs);
  }
  function resume(): void {
    clearTimeout(drainTimer);
    dispatchController?.resume();
  }
  if (res.destroyed) end('answered');
  else res.once('close', () => end('answered'));

  return {
    onRequestStart(controller) {
      dispatchController = controller;
      if (stage === 'over') controller.abort(new Error('the client is gone'));
      else stage = 'sent';
    },
    onResponseStart(controller, status, headers, text = '') {
      // An interim answer: the final one follows.
      if (status >= 100 && status < 200) return countInterim();
      const raw = rawHeaderTexts(controller.rawHeaders);
      const reason = reasonPhrase(status, text);
      if (stage === 'over' || !writeAnswerHead(res, order, { status, reason, raw }))
        return end('lost');
      stage = 'answering';
      const { 'content-length': length, 'content-encoding': coding } = headers;
      bodyCopy = order.observer?.onAnswer({ status, coding: coding?.toString() });
      res.on('error', () => res.destroy());
      // The library applies its length check to answers with a body.
      if (status === 304 || status === 204) return void res.end();
      // A client that waits for events must see the headers at once.
      if (length === undefined) flushHead(res);
      else bytesLeft = Number(length);
    },
    onResponseData(_controller, chunk) {
      if (stage !== 'answering') return;
      bodyCopy?.add(chunk);
      bytesLeft -= chunk.length;
      if (bytesLeft === 0) lastChunk = chunk;
      else if (!res.write(chunk)) pauseUntilDrained();
    },
    onResponseEnd() {
      if (stage !== 'answering') return;
      if (connectionError.isCurrent && Number.isNaN(bytesLeft)) return abortAnswer();
      bodyCopy?.end('whole');
      if (!res.writableEnded) res.end(lastChunk);
    },
    onResponseError() {
      if (stage === 'answering') abortAnswer();
      else if (req.socket.destroyed) end('answered');
      else end(stage === 'unsent' ? 'unreachable' : 'lost');
    },
  };
}

function rawHeaderTexts(raw: Dispatcher.DispatchController['rawHeaders']): RawHeaders {
  return Array.isArray(raw) ? raw.map((each) => each.toString('latin1')) : [];
}

/**
 * Returns the reason phrase. The library reads it as UTF-8; bytes that are not UTF-8 are lost, so
 * the phrase is dropped.
 */
function reasonPhrase(status: number, text: string): string {
  if (text.includes('\ufffd')) return STATUS_CODES[status] ?? '';
  return Buffer.from(text).toString('latin1');
}
