/**
 * Waits for a limited time for work that continues in any case. True when it finished in time;
 * rejects when it failed in time. An abortable delay is not used, since each unneeded one creates
 * an error with a stack.
 */
export async function completesWithin(timeoutMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), timeoutMs);
  });
  try {
    return await Promise.race([work.then(() => true), timedOut]);
  } finally {
    clearTimeout(timer);
  }
}
