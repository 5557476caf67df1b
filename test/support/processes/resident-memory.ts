import { readFileSync } from 'node:fs';

type Process = { readonly pid?: number | undefined };

/** Resident memory of a process, in MiB; 0 once it is gone. */
export function residentMb({ pid }: Process): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** The most memory that it holds while something happens, above what it held before. */
export async function growthMb(of: Process, act: () => Promise<unknown>): Promise<number> {
  const before = residentMb(of);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, residentMb(of))), 20);
  await act().finally(() => clearInterval(watch));
  return Math.max(most, residentMb(of)) - before;
}
