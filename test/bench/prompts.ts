import { setTimeout as delay } from 'node:timers/promises';
import { type Bench, running, startedEachRound } from './bench.ts';
import { type HoldoverOptions, startHoldover } from './holdover.ts';
import { type Figures, quantile } from './measure.ts';
import { type Program, startOurs } from './program.ts';
import type { PromptTimes } from './programs/prompter.ts';

const FIRST = 100;
const BEFORE = 3000;
const EACH_ROUND = 300;
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

/** A prompt of a server that has run many: V8 has compiled what they need. */
export const warmPrompts: Bench = {
  name: 'prompts-warm',
  needs: [],
  async prepare(context) {
    const prompter = await context.keep(startOurs('prompter'));
    return running(context, [], {
      startProgram: () => Promise.reject(new Error('no other program runs v1 prompts')),
      fill: (server) => postPrompts(prompter, server, BEFORE),
      measure: (server) => laterPrompts(prompter, server),
    });
  },
};

async function laterPrompts(prompter: Program, server: Program): Promise<Figures> {
  const cpuBefore = server.cpuNs();
  const { endMs } = await postPrompts(prompter, server, EACH_ROUND);
  return {
    [`prompts after ${BEFORE} others, POST to terminal frame: p50, ms`]: quantile(endMs, 0.5),
    'the same, p99, ms': quantile(endMs, 0.99),
    'processor time of each, ms': (server.cpuNs() - cpuBefore) / 1e6 / EACH_ROUND,
  };
}

/** Posts each after the end of the one before, to a server that started a second ago. */
async function firstPrompts(prompter: Program, options: HoldoverOptions): Promise<Figures> {
  const server = await startHoldover(options);
  try {
    await delay(QUIET_MS);
    const cpuBefore = server.cpuNs();
    const { endMs } = await postPrompts(prompter, server, FIRST);
    const cpuMs = (server.cpuNs() - cpuBefore) / 1e6;
    return {
      [`first ${FIRST} prompts, POST to terminal frame: p50, ms`]: quantile(endMs, 0.5),
      'the same, p99, ms': quantile(endMs, 0.99),
      'processor time of each, ms': cpuMs / FIRST,
    };
  } finally {
    await server.stop();
  }
}

function postPrompts(prompter: Program, { url }: Program, count: number): Promise<PromptTimes> {
  return prompter.ask<PromptTimes>({ url, count });
}
