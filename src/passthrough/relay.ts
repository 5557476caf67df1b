import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import httpProxy from 'http-proxy';
import { type Call, type Exchange, type Order, type Outcome, createCall } from './call.ts';
import { createQuickWay } from './quick.ts';

/** How long the upstream may take. */
export type RelayLimits = {
  readonly connectTimeoutMs: number;
  /** Without a byte in either direction; a model may think for ten minutes before it says a word. */
  readonly silenceMs: number;
};

/** The way to one upstream, for calls that go there and come back as they are. */
export type Relay = {
  /** Sends a call on once; what the client has not been answered is for the caller to say. */
  send(exchange: Exchange, order: Order): Promise<Outcome>;
  /** Whether a call is sent on when all of it is here. */
  isSmall(request: IncomingMessage): boolean;
  close(): void;
};

/**
 * Of a call, unless something else is said.
 * @internal
 */
export const RELAY_LIMITS: RelayLimits = { connectTimeoutMs: 5_000, silenceMs: 15 * 60_000 };

/** Servers close idle connections after five seconds or more; one that is closed under a call loses it. */
const IDLE_MS = 4_000;

/** Small calls go a quick way of their own, all others through `http-proxy`. */
export function createRelay(origin: string, limits: Partial<RelayLimits> = {}): Relay {
  const all = { ...RELAY_LIMITS, ...limits };
  const flow = createFlow(origin, all);
  const quick = createQuickWay(origin, { ...all, idleMs: IDLE_MS });
  return {
    isSmall: (request) => quick.takes(request),
    send: (exchange, order) => (quick.takes(exchange.req) ? quick : flow).send(exchange, order),
    close() {
      quick.close();
      flow.close();
    },
  };
}

/** `http-proxy` sends the request; the answer is written by the call itself. */
function createFlow(
  origin: string,
  { connectTimeoutMs, silenceMs }: RelayLimits,
): Pick<Relay, 'send' | 'close'> {
  const { protocol, hostname, port } = new URL(origin);
  const Agent = protocol === 'https:' ? HttpsAgent : HttpAgent;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS, scheduling: 'lifo' });
  const host = hostname.replace(/^\[|\]$/g, '');
  const proxy = httpProxy.createProxyServer({
    target: { protocol, host, hostname: host, port },
    agent,
    proxyTimeout: silenceMs,
    selfHandleResponse: true,
    prependPath: false,
    toProxy: true,
  });
  const calls = new WeakMap<object, Call>();
  proxy.on('proxyReq', (request, shown) => calls.get(shown)?.onConnection(request));
  proxy.on('proxyRes', (answer, shown) => calls.get(shown)?.onAnswer(answer));
  return {
    send: (exchange, order) =>
      new Promise((resolve) => {
        const { req, res } = exchange;
        const call = createCall({ exchange, order, connectTimeoutMs, resolve });
        const options = { method: req.method, buffer: req };
        calls.set(call.shown, call);
        try {
          proxy.web(call.shown as IncomingMessage, res, options, (error) => call.fail(error));
          // Not before the way is open: a listener makes the bytes flow.
          order.ear?.onRequest();
        } catch (error) {
          call.fail(error as Error);
        }
      }),
    close: () => agent.destroy(),
  };
}
