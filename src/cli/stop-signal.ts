const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Resolves with the first SIGINT or SIGTERM. A second one of either ends the process at once. */
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
