import { readFile, stat } from 'node:fs/promises';
import { FETCH_LIMITS } from './fetcher.ts';
import type { FetchOutcome, Validators } from './fetch-outcome.ts';

/** Reads the operator's file, unless it is still the one that was read before. */
export async function readSourceFile(
  path: string,
  known: Validators | undefined,
  maxBytes = FETCH_LIMITS.maxBytes,
): Promise<FetchOutcome> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) return { kind: 'failed', reason: 'it is no file' };
    const { size, mtimeMs, ino } = stats;
    const etag = `${size}-${mtimeMs}-${ino}`;
    if (etag === known?.etag) return { kind: 'same' };
    if (size > maxBytes) return { kind: 'failed', reason: `it is larger than ${maxBytes} bytes` };
    return { kind: 'text', bytes: await readFile(path), from: 0, validators: { etag } };
  } catch (error) {
    return { kind: 'failed', reason: (error as Error).message };
  }
}
