import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Holdover } from './holdover.ts';
import type { RawAnswer } from '../clients/raw-socket.ts';

/** A secret planted wherever a request can carry one; it must never be seen again. */
export const CANARY = 'kn-Qz7Vx93canary41';

/** The conditions that hold after every hostile request. */
export async function expectHealthy(server: Holdover): Promise<void> {
  const health = await fetch(`${server.url}/healthz`);
  expect(health.status).toBe(200);
  await health.arrayBuffer();
  // A connection that was cut off is noticed a moment later.
  await expect.poll(() => readdirSync(join(server.dataDir, 'spool'))).toEqual([]);
  process.kill(server.pid, 0);
  const log = newLinesOf(server);
  expect(log).not.toContain(CANARY);
  expect(log).not.toMatch(/uncaught|unhandled/i);
}

/** How much of the log of each server an earlier check has read, to the end of a line. */
const readLengths = new WeakMap<Holdover, number>();

/** A test with hundreds of checks would read a log of megabytes each time. */
function newLinesOf(server: Holdover): string {
  const log = server.log();
  const lines = log.slice(readLengths.get(server));
  readLengths.set(server, log.lastIndexOf('\n') + 1);
  return lines;
}

/** An answer shows neither secrets nor insides; only the history of a failed run tells its steps. */
export function expectNoLeak(answer: Pick<RawAnswer, 'raw' | 'status'>): void {
  expect(answer.raw).not.toContain(CANARY);
  expect(answer.raw).not.toMatch(/\/(src|dist|node_modules)\/|file:\/\//);
  if (answer.status >= 400) expect(answer.raw).not.toMatch(/\bat \S+ \(|\.[jt]s:\d+/);
  expect(answer.raw).not.toMatch(/^(server|x-powered-by):/im);
}

/** Files below a directory that contain one of these texts, in whatever they are. */
export function filesWith(dir: string, ...texts: readonly string[]): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const bytes = bytesIfThere(path);
      return texts.some((text) => bytes.includes(text));
    });
}

/** The server may remove a file between the listing and the reading. */
function bytesIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}
