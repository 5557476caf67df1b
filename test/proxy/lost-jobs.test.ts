import { expect, onTestFinished, test, vi } from 'vitest';
import { entryOf, untilRunning } from '../support/clients/client-helpers.ts';
import { startHoldover } from '../support/processes/holdover.ts';
import { endless, flat } from '../support/graphs/workflows.ts';
import { notRun, openStack } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });

test.skipIf(notRun !== '')(
  `an engine that dies behind comfy-api-proxy ends what ran, and what waited is sent again${notRun}`,
  async () => {
    const stack = await openStack();
    onTestFinished(() => stack.close());
    const { holdover, engine } = stack;
    const head = await stack.post(endless({ seed: 5 }));
    expect(await untilRunning(holdover.url)).toBe(head);
    const waiting = [await stack.post(flat({ color: 1 })), await stack.post(flat({ color: 2 }))];
    await expect.poll(() => stack.queue()).toEqual({ running: [head], pending: waiting });

    await stack.front.down();
    await engine.kill9();
    const fresh = await startHoldover({ upstream: 'embedded', port: engine.port });
    onTestFinished(() => fresh.dispose());
    await stack.front.up();

    for (const id of waiting) {
      await expect.poll(() => entryOf(holdover.url, id), { timeout: 60_000 }).toBeDefined();
      expect((await entryOf(holdover.url, id)).status.status_str).toBe('success');
    }
    await expect.poll(() => entryOf(holdover.url, head), { timeout: 30_000 }).toBeDefined();
    expect((await entryOf(holdover.url, head)).status.status_str).toBe('error');
    expect(await stack.queue()).toEqual({ running: [], pending: [] });
  },
);
