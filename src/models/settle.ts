import type { ModelCallStore } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { Bucket } from '../wire/router.ts';
import { type Ends, isGone, watchClose } from './connection.ts';
import type { Visit } from './invoke.ts';
import type { Done } from './perform.ts';
import type { Hold } from './replay.ts';
import { Unavailable } from './reply.ts';

type Deps = {
  readonly modelCalls: ModelCallStore;
  readonly now: () => number;
  readonly log: Logger;
};

type Settled = Visit & {
  /** As it was asked for: there may be no such model. */
  readonly model: string;
  readonly startedAtMs: number;
  readonly done: Done;
  /** The key of the call, if it has one and this is not a replay. */
  readonly hold?: Hold;
};

/** Puts the end of a call on disk before its answer goes out, and puts it right if that gets lost. */
export async function settle(call: Settled, deps: Deps): Promise<void> {
  const { ctx, model, requestId, visitor, startedAtMs, done, hold } = call;
  const record = deps.modelCalls.insert({
    requestId,
    workspace: visitor.workspace,
    user: visitor.caller.user,
    model,
    startedAtMs,
    endedAtMs: deps.now(),
    status: done.reply.status,
    errorType: done.reply.bucket ?? null,
    chargedCents: done.cents,
    replayed: done.replayed ?? false,
  });
  // Begun in one turn, and so one transaction: charged and kept, or neither.
  const written = await Promise.allSettled([record, hold?.settle(done.reply)]);
  const failure = written.find((each) => each.status === 'rejected');
  if (failure) throw new Unavailable('the call could not be recorded', { cause: failure.reason });
  watchDelivery(ctx, (begun) => {
    undelivered({ requestId, begun, cents: done.cents, hold }, deps).catch((error: unknown) =>
      deps.log.error({ err: error, requestId }, 'an undelivered answer could not be recorded'),
    );
  });
}

/**
 * Tells when an answer did not arrive whole, and whether any of it was sent. Node says `finish` of a
 * response whose connection broke, too: it counts only while the connection is there. It calls the
 * headers of a response sent that still waits for its turn, without a connection.
 */
function watchDelivery(ends: Ends, onShort: (begun: boolean) => void): void {
  const { req, res } = ends;
  let ended = false;
  let arrived = false;
  const short = (): void => {
    const hadTurn = ended || res.socket !== null;
    if (!arrived) onShort(hadTurn && res.headersSent);
  };
  if (isGone(ends)) return short();
  res.once('finish', () => {
    ended = true;
    arrived = !req.socket.destroyed;
  });
  watchClose(ends, short);
}

type Lost = {
  readonly requestId: string;
  readonly begun: boolean;
  readonly cents: number;
  readonly hold: Hold | undefined;
};

/** Nothing reached the caller: nothing is charged, the key is free. Part did: the key is spent. */
async function undelivered({ requestId, begun, cents, hold }: Lost, deps: Deps): Promise<void> {
  const errorType = 'client_disconnected' satisfies Bucket;
  const amended = { errorType, chargedCents: begun ? cents : 0 };
  await Promise.all([
    deps.modelCalls.amend(requestId, amended),
    begun ? hold?.consume() : hold?.release(),
  ]);
}
