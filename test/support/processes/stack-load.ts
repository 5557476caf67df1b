import { expect, onTestFinished } from 'vitest';
import { startSteadyClient } from '../clients/steady-client.ts';
import { getJson } from '../clients/v1-client.ts';
import type { Stack } from './stack.ts';

/** Clients that post through the balancer of a stack until the test ends. */
export type StackLoad = ReturnType<typeof startStackLoad>;

const TAKEN_WITHIN_MS = 60_000;
const DONE_WITHIN_MS = 120_000;

export function startStackLoad(stack: Stack, name: string, count: number) {
  const headers = { Authorization: `Bearer ${stack.token}` };
  const clients = Array.from({ length: count }, (_, i) =>
    startSteadyClient(stack.balancer, {
      clientId: `${name}${i}`,
      headers,
      prefixOf: (promptId) => promptId,
    }),
  );
  onTestFinished(() => Promise.all(clients.map((client) => client.stop())).then(() => {}));
  const accepted = () => clients.map(({ posted }) => posted.filter(({ status }) => status === 200));
  return {
    /** Resolves when the balancer and the stores let a prompt of each client in again. */
    async untilTaken(): Promise<void> {
      const before = accepted().map(({ length }) => length);
      const more = () => accepted().every(({ length }, i) => length > (before[i] ?? 0));
      await expect.poll(more, { timeout: TAKEN_WITHIN_MS, interval: 100 }).toBe(true);
    },
    /** Each prompt that was posted so far was taken, and its client hears its last frame. */
    async expectNoneRefused(): Promise<void> {
      const posts = clients.flatMap(({ posted, ends }) =>
        posted.map((post) => ({ ...post, ends })),
      );
      expect(posts.filter(({ status }) => status !== 200)).toEqual([]);
      const unheard = () => posts.filter(({ promptId, ends }) => !ends.has(promptId));
      await expect.poll(unheard, { timeout: 20_000 }).toEqual([]);
    },
    /** Resolves when all posts are answered. */
    async stopPosting(): Promise<void> {
      await Promise.all(clients.map((client) => client.stopPosting()));
    },
    /** Each accepted prompt has ended once, with its picture; no other one is there but those that were never answered. */
    async expectAllDone(): Promise<void> {
      const { url } = stack.balancer;
      const ids = accepted().flatMap((posts) => posts.map(({ promptId }) => promptId));
      const idle = async () => (await getJson(`${url}/prompt`, headers)).exec_info.queue_remaining;
      await expect.poll(idle, { timeout: DONE_WITHIN_MS, interval: 200 }).toBe(0);
      const history = await getJson(`${url}/history`, headers);
      const done = ids.filter((id) => history[id]?.status.status_str === 'success');
      expect(done).toEqual(ids);
      const images = ids.flatMap((id) => history[id].outputs['9'].images);
      expect(images.map(promptOf)).toEqual(ids);
      // A run that was killed is made again; its picture is there once.
      const names: string[] = await getJson(`${url}/internal/files/output`, headers);
      const made = names.map((filename) => promptOf({ filename }));
      expect(made.filter((id, at) => made.indexOf(id) !== at)).toEqual([]);
      for (const image of images.slice(-20)) {
        const picture = await fetch(`${url}/view?${new URLSearchParams(image)}`, { headers });
        expect([picture.status, (await picture.arrayBuffer()).byteLength > 50]).toEqual([
          200,
          true,
        ]);
      }
    },
  };
}

/** Its pictures are named after it, and numbered. */
function promptOf({ filename }: { readonly filename: string }): string {
  return filename.replace(/_\d+_\.png.*$/, '');
}
