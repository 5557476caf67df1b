import type { ModelCall, ModelDef, ModelOutcome } from './model-def.ts';

/** Why a call is given up before its model is done. */
export type StopReason = 'deadline' | 'disconnected' | 'closing';

/** How a run ended; `crashed`: the model threw. */
export type RunEnd =
  | ModelOutcome
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  | { readonly kind: 'crashed'; readonly cause: unknown };

type Run = {
  readonly def: ModelDef;
  readonly call: Omit<ModelCall, 'signal'>;
  readonly stop: AbortController;
  readonly deadlineMs: number;
};

/** Runs a model until it answers or is stopped; what it has ready as it is stopped still counts. */
export async function runModel({ def, call, stop, deadlineMs }: Run): Promise<RunEnd> {
  const { signal } = stop;
  const timer = setTimeout(() => stop.abort('deadline' satisfies StopReason), deadlineMs);
  try {
    const run = async (): Promise<RunEnd> => await def.run({ ...call, signal });
    return await Promise.race([
      run().catch((cause: unknown) => crashOrStop(signal, cause)),
      whenStopped(signal),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves one event loop iteration later, so that an answer committed at the same moment wins. */
function whenStopped(signal: AbortSignal): Promise<RunEnd> {
  return new Promise((resolve) => {
    const resolveLater = (): void => void setImmediate(() => resolve(stopEnd(signal)));
    if (signal.aborted) resolveLater();
    else signal.addEventListener('abort', resolveLater, { once: true });
  });
}

function crashOrStop(signal: AbortSignal, cause: unknown): RunEnd {
  return signal.aborted ? stopEnd(signal) : { kind: 'crashed', cause };
}

function stopEnd(signal: AbortSignal): RunEnd {
  return { kind: 'stopped', reason: signal.reason as StopReason };
}
