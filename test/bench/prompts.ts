import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, startedEachRound } from './bench.ts';
import { type HoldoverOptions, startHoldover } from './holdover.ts';
import { type Figures, quantile } from './measure.ts';
import { type Program, startOurs } from './program.ts';
import type { PromptTimes } from './programs/prompter.ts';

const FIRST = 100;
const NEXT = 500;
const QUIET_MS = 1000;

/** The first prompts after a start, with the embedded engine or in front of another Holdover. */
export const prompts = (mode: 'embedded' | 'relayed'): Bench => ({
  name: `prompts-${mode}`,
  needs: [],
  async prepare(context) {
    const { workDir, checkout, keep } = context;
    const prompter = await keep(startOurs('prompter'));
    const args =
      mode === 'embedded'
        ? []
        : [
            '--upstream',
            (await keep(startHoldover({ workDir, checkout: checkout?.dir, side: 'load' }))).url,
          ];
    return startedEachRound(context, (options) => firstPrompts(prompter, { ...options, args }));
  },
});

/** Posts each after the end of the one before, to a server that started a second ago. */
async function firstPrompts(prompter: Program, options: HoldoverOptions): Promise<Figures> {
  const server = await startHoldover(options);
  try {
    await delay(QUIET_MS);
    const cpuBefore = server.cpuNs();
    const post = (count: number) => prompter.ask<PromptTimes>({ url: server.url, count });
    const { endMs } = await post(FIRST);
    const cpuMs = (server.cpuNs() - cpuBefore) / 1e6;
    const { endMs: nextMs } = await post(NEXT);
    return {
      [`first ${FIRST} prompts, POST to terminal frame: p50, ms`]: quantile(endMs, 0.5),
      'the same, p99, ms': quantile(endMs, 0.99),
      'processor time of each, ms': cpuMs / FIRST,
      [`next ${NEXT} prompts: p50, ms`]: quantile(nextMs, 0.5),
    };
  } finally {
    await server.stop();
  }
}
