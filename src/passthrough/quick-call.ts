import { createInterimCount } from '../wire/interim-answers.ts';
import { STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Exchange, Order, Outcome } from './call.ts';
import { beginAnswer, sendHead } from './head.ts';
import type { RawHeaders } from './headers.ts';
import type { Copy } from './overhear.ts';

type Options = {
  readonly exchange: Exchange;
  readonly order: Order;
  readonly silenceMs: number;
  /** Whether a connection is being broken off at this very moment. */
  readonly breaks: { readonly isOne: boolean };
  readonly resolve: (outcome: Outcome) => void;
};

/** Brings an answer to the client as it comes. */
export function createQuickCall(options: Options): Dispatcher.DispatchHandler {
  const { exchange, order, silenceMs, breaks, resolve } = options;
  const { req, res } = exchange;
  let stage: 'unsent' | 'sent' | 'answering' | 'over' = 'unsent';
  let call: Dispatcher.DispatchController | undefined;
  let copy: Copy | undefined;
  const countInterim = createInterimCount();
  /** Of the body; NaN: nobody has said. */
  let bytesLeft = Number.NaN;
  let last: Buffer | undefined;

  function end(outcome: Outcome): void {
    if (stage === 'over') return;
    stage = 'over';
    if (outcome === 'answered') exchange.respond = false;
    if (!res.writableFinished) call?.abort(new Error('the call is over'));
    resolve(outcome);
  }
  function breakOff(): void {
    copy?.end('cut off');
    if (res.writableEnded) return;
    if (req.httpVersion === '1.0') req.socket.resetAndDestroy();
    else res.destroy();
  }
  /** A client that does not read may be as silent as a service. */
  function holdUp(): void {
    call?.pause();
    const late = setTimeout(() => res.destroy(), silenceMs);
    const stop = (): void => clearTimeout(late);
    res.once('close', stop).once('drain', () => {
      stop();
      call?.resume();
    });
  }
  if (res.destroyed) end('answered');
  else res.once('close', () => end('answered'));

  return {
    onRequestStart(controller) {
      call = controller;
      if (stage === 'over') controller.abort(new Error('the client is gone'));
      else stage = 'sent';
    },
    onResponseStart(controller, status, headers, text = '') {
      // Of another answer, that is still to come.
      if (status >= 100 && status < 200) return countInterim();
      const raw = textsOf(controller.rawHeaders);
      const reason = reasonOf(status, text);
      if (stage === 'over' || !beginAnswer(res, order, { status, reason, raw })) return end('lost');
      stage = 'answering';
      const { 'content-length': length, 'content-encoding': coding } = headers;
      copy = order.ear?.onAnswer({ status, coding: coding?.toString() });
      res.on('error', () => res.destroy());
      // What the library holds of its length is about another answer.
      if (status === 304 || status === 204) return void res.end();
      // Whoever waits for events wants to know at once that they will come.
      if (length === undefined) sendHead(res);
      else bytesLeft = Number(length);
    },
    onResponseData(_controller, chunk) {
      if (stage !== 'answering') return;
      copy?.add(chunk);
      bytesLeft -= chunk.length;
      if (bytesLeft === 0) last = chunk;
      else if (!res.write(chunk)) holdUp();
    },
    onResponseEnd() {
      if (stage !== 'answering') return;
      if (breaks.isOne && Number.isNaN(bytesLeft)) return breakOff();
      copy?.end('whole');
      if (!res.writableEnded) res.end(last);
    },
    onResponseError() {
      if (stage === 'answering') breakOff();
      else if (req.socket.destroyed) end('answered');
      else end(stage === 'unsent' ? 'unreachable' : 'lost');
    },
  };
}

function textsOf(raw: Dispatcher.DispatchController['rawHeaders']): RawHeaders {
  return Array.isArray(raw) ? raw.map((each) => each.toString('latin1')) : [];
}

/** The library has read it as UTF-8; bytes that were none are lost, and with them the words. */
function reasonOf(status: number, text: string): string {
  if (text.includes('\ufffd')) return STATUS_CODES[status] ?? '';
  return Buffer.from(text).toString('latin1');
}
