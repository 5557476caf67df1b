import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';

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

/** Adds headers to an answer with this status, which has its own already. */
type AddHeaders = (answer: ServerResponse, status: number) => void;

/** The request that is sent upstream. */
export type ProxyRequest = {
  /** Path and query, byte for byte. */
  readonly path: string;
  readonly headers: string[];
  readonly addHeaders: AddHeaders | undefined;
  /** Observes the call without changing it. */
  readonly observer: CallObserver | undefined;
  /** True for a body that is not passed on: the call ends as `doubtful`. Only short ones are read. */
  readonly isDoubtful?: (body: Buffer) => boolean;
};
