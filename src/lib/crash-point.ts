const crashAt = process.env['HOLDOVER_CRASH_AT'];

let arrivalCount = 0;

/**
 * Marks a moment between two durable steps, of which the first stores enough for the next process to
 * continue. Ends this process as kill -9 does, if `HOLDOVER_CRASH_AT` names this point: only so can a test
 * hit the one instruction between two steps. `NAME:3` ends it when the point is reached for the
 * third time.
 */
export function reached(point: string): void {
  if (crashAt === undefined) return;
  const [name, nth = '1'] = crashAt.split(':');
  if (name === point && ++arrivalCount === Number(nth)) process.kill(process.pid, 'SIGKILL');
}
