import type { ModelCallStore } from '../ledger/ledger.ts';
import type { Logger } from '../observability/log.ts';
import type { Bucket } from '../protocol/router.ts';
import { type CallConnection, isClientGone, onceClosed } from '../http/client-connection.ts';
import type { ModelRequest } from './invocation.ts';
import type { CallResult } from './runner.ts';
import type { KeyHold } from './replays.ts';
import { Unavailable } from './reply.ts';

type SettleOptions = {
  readonly modelCalls: ModelCallStore;
  readonly now: () => number;
  readonly log: Logger;
};

type SettledCall = ModelRequest & {
  /** The requested id; there may be no such model. */
  readonly model: string;
  readonly startedAtMs: number;
  readonly result: CallResult;
  /** The key of the call, if it has one and this is not a replay. */
  readonly hold?: KeyHold;
};

/**
 * Records the end of a call before its answer is sent, and corrects the record when the answer is
 * lost.
 */
export async function settle(call: SettledCall, options: SettleOptions): Promise<void> {
  const { ctx, model, requestId, modelCaller, startedAtMs, result, hold } = call;
  const record = options.modelCalls.insert({
    requestId,
    workspace: modelCaller.workspace,
    user: modelCaller.caller.user,
    model,
    startedAtMs,
    endedAtMs: options.now(),
    status: result.reply.status,
    errorType: result.reply.bucket ?? null,
    chargedCents: result.cents,
    replayed: result.replayed ?? false,
  });
  // Started in one event loop iteration, and so in one transaction: charged and stored, or neither.
  const written = await Promise.allSettled([record, hold?.settle(result.reply)]);
  const failure = written.find((each) => each.status === 'rejected');
  if (failure) throw new Unavailable('the call could not be recorded', { cause: failure.reason });
  watchDelivery(ctx, (isPartlySent) => {
    recordUndelivered({ requestId, isPartlySent, cents: result.cents, hold }, options).catch(
      (error: unknown) =>
        options.log.error(
          { event: 'models.record_failed', err: error, requestId },
          'could not record an undelivered answer',
        ),
    );
  });
}

/**
 * Reports an answer that did not arrive completely, and whether part of it was sent. Node emits
 * `finish` also for a response whose connection broke: it counts only while the connection exists.
 * Node calls the headers sent for a pipelined response that still waits, without a connection.
 */
function watchDelivery(ends: CallConnection, onUndelivered: (isPartlySent: boolean) => void): void {
  const { req, res } = ends;
  let isFinished = false;
  let isDelivered = false;
  const reportUndelivered = (): void => {
    const hadTurn = isFinished || res.socket !== null;
    if (!isDelivered) onUndelivered(hadTurn && res.headersSent);
  };
  if (isClientGone(ends)) return reportUndelivered();
  res.once('finish', () => {
    isFinished = true;
    isDelivered = !req.socket.destroyed;
  });
  onceClosed(ends, reportUndelivered);
}

type UndeliveredAnswer = {
  readonly requestId: string;
  readonly isPartlySent: boolean;
  readonly cents: number;
  readonly hold: KeyHold | undefined;
};

/** Nothing reached the caller: nothing is charged, the key is free. Part did: the key is spent. */
async function recordUndelivered(
  { requestId, isPartlySent, cents, hold }: UndeliveredAnswer,
  options: SettleOptions,
): Promise<void> {
  const errorType = 'client_disconnected' satisfies Bucket;
  const amended = { errorType, chargedCents: isPartlySent ? cents : 0 };
  await Promise.all([
    options.modelCalls.amend(requestId, amended),
    isPartlySent ? hold?.consume() : hold?.release(),
  ]);
}
