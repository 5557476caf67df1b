import { readFileSync } from 'node:fs';
import { childrenOf } from '../program.ts';

const MS_PER_TICK = 10;

/** `utime`, `stime`, `cutime` and `cstime` of proc(5), from the text of `/proc/PID/stat`. */
export function statMs(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * MS_PER_TICK, 0);
}

/**
 * Processor time in milliseconds of a process since it was spawned: its threads and children, ended ones
 * too, which `Program.cpuNs` leaves out.
 */
export function processorMs(pid: number): number {
  const own = statMs(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return childrenOf(pid).reduce((sum, child) => sum + processorMs(child), own);
}
