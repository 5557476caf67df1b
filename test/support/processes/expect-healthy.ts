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
  expect(server.log()).not.toContain(CANARY);
  expect(server.log()).not.toMatch(/uncaught|unhandled/i);
}

/** An answer shows neither secrets nor insides; only the history of a failed run tells its steps. */
export function expectNoLeak(answer: Pick<RawAnswer, 'raw' | 'status'>): void {
  expect(answer.raw).not.toContain(CANARY);
  expect(answer.raw).not.toMatch(/\/(src|dist|node_modules)\/|file:\/\//);
  if (answer.status >= 400) expect(answer.raw).not.toMatch(/\bat \S+ \(|\.[jt]s:\d+/);
  expect(answer.raw).not.toMatch(/^(server|x-powered-by):/im);
}

/** Files below a directory that contain this text, in whatever they are. */
export function filesWith(dir: string, text: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => readFileSync(path).includes(text));
}
