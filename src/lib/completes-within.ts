/**
 * Waits for work that continues anyway, for a limited time. True when it finished in time; rejects
 * when it failed in time. (An abortable delay creates an error with a stack each time it is not
 * needed.)
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
