import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { RawHeaders } from './headers.ts';

/** A call and its response. */
export type ProxyExchange = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Set to false: the framework must not answer. */
  respond?: boolean | undefined;
};

/** Observes one call. The call does not depend on it. */
export type CallObserver = {
  /** Called before the body of the request begins to flow. */
  onRequest?(): void;
  /** Called before the body of the answer begins to flow. */
  onAnswer(answer: {
    readonly status: number;
    readonly coding: string | undefined;
    readonly body: Readable;
  }): void;
};

/** Returns the headers that are added to an answer with this status. */
type HeadersBeside = (headers: RawHeaders, status: number) => RawHeaders;

/** The request that is sent upstream. */
export type ProxyRequest = {
  /** Path and query, byte for byte. */
  readonly path: string;
  readonly headers: string[];
  /** Returns headers that an answer gets in addition to its own. */
  readonly headersBeside: HeadersBeside | undefined;
  /** Observes the call without changing it. */
  readonly observer: CallObserver | undefined;
  /** True for a body that is not passed on: the call ends as `doubtful`. Only short ones are read. */
  readonly isDoubtful?: (body: Buffer) => boolean;
};
