/**
 * Makes this process die, as by kill -9, when it reaches the moment of that name: only so can a
 * test hit the one instruction between two steps.
 */
export function createCrashPoint(wanted: string | undefined): (moment: string) => void {
  return (moment) => {
    if (wanted === moment) process.kill(process.pid, 'SIGKILL');
  };
}
