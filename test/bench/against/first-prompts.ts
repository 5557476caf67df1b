import { setTimeout as delay } from 'node:timers/promises';
import { type HoldoverOptions, startHoldover } from '../holdover.ts';
import type { Sample } from '../measure.ts';
import type { Program } from '../program.ts';
import { processorMs } from './processor-time.ts';
import { type PromptTimes, type Prompts, sampleOf } from './prompts.ts';

export const FIRST = 100;
const QUIET_MS = 1000;

/** Posts a hundred prompts one after another to a server that started a second ago. */
export async function firstPrompts(prompter: Program, url: string): Promise<PromptTimes> {
  await delay(QUIET_MS);
  const pace = 'each after the end of the one before';
  return prompter.ask({ url, count: FIRST, connections: 1, pace } satisfies Prompts);
}

/** The same to a server started for it; `cpuMs` is the server's time beyond that of one that does nothing. */
export function measureFirst(prompter: Program, options: HoldoverOptions): Promise<Sample> {
  return measureFirstOf(prompter, () => startHoldover(options));
}

/** The same to any program that answers them. */
export async function measureFirstOf(
  prompter: Program,
  start: () => Promise<Program>,
): Promise<Sample> {
  const spawnedAt = performance.now();
  const server = await start();
  try {
    const times = await firstPrompts(prompter, server.url);
    const allMs = processorMs(server.pid);
    const tookMs = performance.now() - spawnedAt;
    await server.stop();
    return sampleOf(times, { allMs, idleMs: await idleMs(start, tookMs) });
  } finally {
    await server.stop();
  }
}

async function idleMs(start: () => Promise<Program>, forMs: number): Promise<number> {
  const spawnedAt = performance.now();
  const server = await start();
  await delay(Math.max(0, spawnedAt + forMs - performance.now()));
  const ms = processorMs(server.pid);
  await server.stop();
  return ms;
}
