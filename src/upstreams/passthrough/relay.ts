import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import httpProxy from 'http-proxy';
import {
  type ProxyCall,
  type ProxyExchange,
  type ProxyRequest,
  type ProxyOutcome,
  createProxyCall,
} from './proxy-call.ts';
import { createFastRelay } from './fast-relay.ts';

/** Time limits of calls to the upstream. */
export type RelayLimits = {
  readonly connectTimeoutMs: number;
  /**
   * Longest silence in both directions; a model may compute for ten minutes before its first byte.
   */
  readonly silenceMs: number;
};

/** The way to one upstream, for calls that go there and come back as they are. */
export type Relay = {
  /** Sends a call once. The caller answers the client when this fails. */
  send(exchange: ProxyExchange, proxyRequest: ProxyRequest): Promise<ProxyOutcome>;
  /** True when a call is sent after its whole body has arrived. */
  isSmall(request: IncomingMessage): boolean;
  close(): void;
};

/**
 * Of a call, unless something else is said.
 * @internal
 */
export const RELAY_LIMITS: RelayLimits = { connectTimeoutMs: 5_000, silenceMs: 15 * 60_000 };

/** Servers close idle connections after five seconds or more; one that is closed under a call loses it. */
const KEEP_ALIVE_MS = 4_000;

/** Small calls go a quick way of their own, all others through `http-proxy`. */
export function createRelay(origin: string, limits: Partial<RelayLimits> = {}): Relay {
  const allLimits = { ...RELAY_LIMITS, ...limits };
  const streaming = createStreamingRelay(origin, allLimits);
  const fast = createFastRelay(origin, { ...allLimits, keepAliveMs: KEEP_ALIVE_MS });
  return {
    isSmall: (request) => fast.accepts(request),
    send: (exchange, proxyRequest) =>
      (fast.accepts(exchange.req) ? fast : streaming).send(exchange, proxyRequest),
    close() {
      fast.close();
      streaming.close();
    },
  };
}

/** `http-proxy` sends the request; the answer is written by the call itself. */
function createStreamingRelay(
  origin: string,
  { connectTimeoutMs, silenceMs }: RelayLimits,
): Pick<Relay, 'send' | 'close'> {
  const { protocol, hostname, port } = new URL(origin);
  const Agent = protocol === 'https:' ? HttpsAgent : HttpAgent;
  const agent = new Agent({ keepAlive: true, timeout: KEEP_ALIVE_MS, scheduling: 'lifo' });
  const host = hostname.replace(/^\[|\]$/g, '');
  const proxy = httpProxy.createProxyServer({
    target: { protocol, host, hostname: host, port },
    agent,
    proxyTimeout: silenceMs,
    selfHandleResponse: true,
    prependPath: false,
    toProxy: true,
  });
  const calls = new WeakMap<object, ProxyCall>();
  proxy.on('proxyReq', (request, visibleRequest) =>
    calls.get(visibleRequest)?.onConnection(request),
  );
  proxy.on('proxyRes', (answer, visibleRequest) => calls.get(visibleRequest)?.onAnswer(answer));
  return {
    send: (exchange, proxyRequest) =>
      new Promise((resolve) => {
        const { req, res } = exchange;
        const call = createProxyCall({
          proxyExchange: exchange,
          proxyRequest,
          connectTimeoutMs,
          resolve,
        });
        const options = { method: req.method, buffer: req };
        calls.set(call.visibleRequest, call);
        try {
          proxy.web(call.visibleRequest as IncomingMessage, res, options, (error) =>
            call.fail(error),
          );
          // Not earlier: a listener makes the bytes flow.
          proxyRequest.observer?.onRequest();
        } catch (error) {
          call.fail(error as Error);
        }
      }),
    close: () => agent.destroy(),
  };
}
