const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** The first signal that asks this process to stop; a second one of either kind means now. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const stop = (signal: NodeJS.Signals): void => {
      for (const other of SIGNALS)
        process.removeAllListeners(other).once(other, () => process.exit(1));
      resolve(signal);
    };
    for (const signal of SIGNALS) process.once(signal, stop);
  });
}
