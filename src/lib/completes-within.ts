/**
 * Waits for work that goes on anyway, but only so long. True when it was done in time; rejects when
 * it failed in time. (An abortable delay makes an error with a stack each time it is not needed.)
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
