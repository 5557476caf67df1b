import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { PublicAddresses } from './http/public-address.ts';
import type { Metrics } from './metrics.ts';
import type { RawHeaders } from './passthrough/headers.ts';
import type { Express as Passing, PassThrough } from './passthrough/passthrough.ts';
import { type Logger, logAnswer, requestId } from './telemetry.ts';
import type { Express, Lane } from './v1/quick.ts';
import type { Caller } from './wire/jobs.ts';

type Deps = {
  /** Serves everything else, and says what went wrong. */
  readonly serve: RequestListener;
  readonly passThrough: PassThrough | undefined;
  /** Of calls that are answered here. */
  readonly quick: Lane;
  /** Something about a request that must be refused. */
  readonly guard: (request: IncomingMessage) => object | undefined;
  readonly config: { readonly corsOrigin: string | undefined };
  /** Whoever notes each call notes these too. */
  readonly tap: object | undefined;
  readonly metrics: Pick<Metrics, 'note'>;
  readonly addresses: Pick<PublicAddresses, 'clientOf'>;
  /** For the line of each request. */
  readonly answers: Logger;
};

/** What calls are counted under, whichever way they go. */
export const PASSED_ROUTES = {
  v2: '/api/v2/*',
  router: '/v1/models/*',
} as const satisfies Record<Passing['api'], string>;

/**
 * Lets small calls to the service behind pass without a framework, which costs as much as the call
 * itself, and answers those whose answer lies ready. They are guarded, logged and counted as any
 * other; what is unusual about one is for others to deal with.
 */
export function createFront({ serve, passThrough, quick, guard, ...deps }: Deps): RequestListener {
  const isWatched = deps.tap !== undefined || deps.config.corsOrigin !== undefined;
  if (isWatched) return serve;
  const passing = passThrough && passingLane(passThrough);
  return (req, res) => {
    const way = quick(req, res) ?? passing?.(req, res);
    if (way === undefined || guard(req)) serve(req, res);
    else void pass(way, req, res);
  };

  async function pass(way: Express, req: IncomingMessage, res: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const id = requestId(req.headers['x-request-id']?.toString());
    const client = deps.addresses.clientOf(req);
    const caller = await sent(way, ['X-Request-Id', id, 'X-Content-Type-Options', 'nosniff']);
    if (caller === undefined) return serve(req, res);
    const { method = '', url = '' } = req;
    const status = res.headersSent ? res.statusCode : CLIENT_GONE;
    const { user } = caller;
    logAnswer(deps.answers, { id, user, client, method, url, status, startedAt, v2: [] });
    deps.metrics.note(req, res, { route: way.route, startedAt });
  }
}

function passingLane(passThrough: PassThrough): Lane {
  return (req, res) => {
    const way = passThrough.express({ req, res });
    return way && { route: PASSED_ROUTES[way.api], send: (carries) => way.send(carries) };
  };
}

/** Of a call whose client left before its answer came, as other servers log it. */
const CLIENT_GONE = 499;

async function sent(way: Express, carries: RawHeaders): Promise<Caller | undefined> {
  try {
    return await way.send(carries);
  } catch {
    // Others find out why, and say so.
    return undefined;
  }
}
