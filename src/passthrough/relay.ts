import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { createRequire } from 'node:module';
import type HttpProxy from 'http-proxy';
import { ProxyCall, type ProxyOutcome } from './proxy-call.ts';
import type { ProxyRequest, ProxyExchange } from './proxy-exchange.ts';

/** The time limits of calls to the upstream. */
export type RelayLimits = Readonly<typeof DEFAULT_RELAY_LIMITS>;

/** Sends calls to one upstream unchanged, and returns its answers. */
export type Relay = {
  /** Sends a call once. The caller answers the client when this fails. */
  send(exchange: ProxyExchange, proxyRequest: ProxyRequest): Promise<ProxyOutcome>;
  close(): void;
};

const DEFAULT_RELAY_LIMITS = {
  connectTimeoutMs: 5_000,
  /**
   * The longest silence in both directions. A model may compute for ten minutes before its first
   * byte.
   */
  silenceMs: 15 * 60_000,
};

/**
 * Servers close idle connections after five seconds or more, and a call on a closing connection is
 * lost.
 */
const IDLE_CONNECTION_MS = 4_000;

/** Sends calls through `http-proxy`. Each call writes its own answer. */
export function createRelay(origin: string, limits: Partial<RelayLimits> = {}): Relay {
  const { connectTimeoutMs, silenceMs } = { ...DEFAULT_RELAY_LIMITS, ...limits };
  const { protocol, hostname, port } = new URL(origin);
  const Agent = protocol === 'https:' ? HttpsAgent : HttpAgent;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS, scheduling: 'lifo' });
  const host = hostname.replace(/^\[|\]$/g, '');
  const proxy = loadHttpProxy().createProxyServer({
    target: { protocol, host, hostname: host, port },
    agent,
    proxyTimeout: silenceMs,
    selfHandleResponse: true,
    toProxy: true,
    ignorePath: true,
  });
  proxy.on('proxyReq', (request, visible) => callOf(visible).onConnection(request));
  proxy.on('proxyRes', (answer, visible) => callOf(visible).onAnswer(answer));
  return {
    send: (exchange, proxyRequest) =>
      new Promise((resolve) => {
        const { req, res } = exchange;
        const call = new ProxyCall(exchange, proxyRequest, connectTimeoutMs, resolve);
        const options = { method: req.method, buffer: req };
        // The library removes the framing of a `DELETE`, so it sees a `POST`.
        const { socket } = req;
        const visible = { method: 'POST', headers: {}, socket, on: req.on.bind(req), call };
        try {
          proxy.web(visible as unknown as IncomingMessage, res, options, (error) =>
            call.fail(error),
          );
          // Not called earlier, since a listener makes the bytes flow.
          proxyRequest.observer?.onRequest?.();
        } catch (error) {
          call.fail(error as Error);
        }
      }),
    close: () => agent.destroy(),
  };
}

/** The library hands back the request that it was given. */
function callOf(visible: IncomingMessage): ProxyCall {
  return (visible as unknown as { readonly call: ProxyCall }).call;
}

const require = createRequire(import.meta.url);

/**
 * Loads http-proxy 1.18.1 without its deprecated call. The library copies `util._extend` while it
 * loads, and Node 24 reports DEP0060 at the first call of that function. For the arguments of the
 * library, `Object.assign` has the same effect.
 */
function loadHttpProxy(): typeof HttpProxy {
  const util = require('node:util') as { _extend: unknown };
  const extend = util._extend;
  util._extend = Object.assign;
  try {
    return require('http-proxy') as typeof HttpProxy;
  } finally {
    util._extend = extend;
  }
}
