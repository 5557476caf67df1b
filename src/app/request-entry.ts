import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { TrafficRecorder } from '../console/traffic-recorder.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { FastProxyCall, PassThrough } from '../upstreams/passthrough/pass-through.ts';
import { type Logger, logRequest, requestId } from '../observability/log.ts';

type RequestEntryOptions = {
  /** Serves all other calls, and reports what went wrong. */
  readonly serveWithApp: RequestListener;
  readonly passThrough: PassThrough | undefined;
  /** Returns the reason to refuse a request; `undefined` when it is accepted. */
  readonly guard: (request: IncomingMessage) => object | undefined;
  readonly corsOrigin: string | undefined;
  /** If present, each call is recorded, and none takes the fast path. */
  readonly sessionRecorder: object | undefined;
  /** If present, each call is logged, and none takes the fast path. */
  readonly trafficLog: object | undefined;
  /** If present, each call is a span, and none takes the fast path. */
  readonly tracing: object | undefined;
  /** Records each call while it is on. Then no call takes the fast path. */
  readonly trafficRecorder: Pick<TrafficRecorder, 'isRecording' | 'beginCall'>;
  readonly metrics: Pick<Metrics, 'note'>;
  readonly addresses: Pick<PublicAddresses, 'clientOf'>;
  /** Writes the line of each request. */
  readonly requestLog: Logger;
};

/** The route labels of passed-through calls in the metrics, on the fast path and outside it. */
export const PASS_THROUGH_ROUTES = {
  v2: '/api/v2/*',
  router: '/v1/models/*',
} as const satisfies Record<FastProxyCall['api'], string>;

/**
 * Passes small calls to the remote service without the framework, which costs as much as the call
 * itself. They are guarded, logged and counted like other calls. The app answers the unusual ones.
 */
export function createRequestEntry({
  serveWithApp,
  passThrough,
  guard,
  trafficRecorder,
  ...options
}: RequestEntryOptions): RequestListener {
  const { sessionRecorder, trafficLog, tracing, corsOrigin } = options;
  const observers = [sessionRecorder, trafficLog, tracing, corsOrigin];
  const needsApp = observers.some((observer) => observer !== undefined);
  if (passThrough === undefined || needsApp) return recordAndServe;
  return (req, res) => {
    if (trafficRecorder.isRecording()) return recordAndServe(req, res);
    const fastCall = passThrough.fastCall({ req, res });
    if (fastCall === undefined || guard(req)) serveWithApp(req, res);
    else void answerFast(fastCall, req, res);
  };

  function recordAndServe(req: IncomingMessage, res: ServerResponse): void {
    if (trafficRecorder.isRecording()) trafficRecorder.beginCall(req, res);
    serveWithApp(req, res);
  }

  async function answerFast(
    fastCall: FastProxyCall,
    req: IncomingMessage,
    res: ServerResponse,
  ): Promise<void> {
    const startedAt = performance.now();
    const id = requestId(req.headers['x-request-id']?.toString());
    const client = options.addresses.clientOf(req);
    const own = ['X-Request-Id', id, 'X-Content-Type-Options', 'nosniff'];
    // The app finds the reason of an error, and answers with it.
    const caller = await fastCall.send(own).catch(() => undefined);
    if (caller === undefined) return serveWithApp(req, res);
    const { method = '', url = '' } = req;
    const status = res.headersSent ? res.statusCode : CLIENT_CLOSED_REQUEST;
    const { user } = caller;
    logRequest(options.requestLog, { id, user, client, method, url, status, startedAt, v2: [] });
    options.metrics.note(req, res, { route: PASS_THROUGH_ROUTES[fastCall.api], startedAt });
  }
}

/**
 * The status in the log for a client that disconnected before its answer, as other servers use it.
 */
const CLIENT_CLOSED_REQUEST = 499;
