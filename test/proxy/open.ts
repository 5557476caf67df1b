import { expect } from 'vitest';
import {
  type ComfyApiProxy,
  installComfyApiProxy,
  startComfyApiProxy,
} from '../support/upstreams/comfy-api-proxy.ts';
import { type EngineProxy, openEngineProxy } from '../support/upstreams/engine-proxy.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';

const installed = await installComfyApiProxy();
/** Why the real server's tests do not run; '' when they do. */
export const notRun = installed.ok ? '' : ` (NOT RUN: ${installed.why})`;
if (notRun) console.warn(`comfy-api-proxy could not be installed, its tests do not run${notRun}`);

/** Holdover → comfy-api-proxy → a front that can misbehave → a v1 engine, another Holdover's. */
export type Stack = {
  readonly holdover: Holdover;
  readonly proxy: () => ComfyApiProxy;
  readonly front: EngineProxy;
  readonly engine: Holdover;
  /** Kills the proxy, which forgets all it knows, and starts it again on its port. */
  restartProxy(): Promise<void>;
  /** The prompt id of an accepted prompt. */
  post(graph: object): Promise<string>;
  /** `queue_remaining`. */
  remaining(): Promise<number>;
  queue(): Promise<{ readonly running: readonly string[]; readonly pending: readonly string[] }>;
  close(): Promise<void>;
};

export async function openStack(
  options: { readonly args?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Stack> {
  const packages = installed.ok ? installed.packages : '';
  const engine = await startHoldover({ upstream: 'embedded' });
  const front = await openEngineProxy(engine.url);
  const start = (port?: number) =>
    startComfyApiProxy({ packages, engineUrl: front.url, ...(port !== undefined && { port }) });
  let proxy = await start();
  const args = ['--upstream', proxy.url, '--object-info', `${engine.url}/object_info`];
  const holdover = await startHoldover({
    upstream: 'embedded',
    args: [...args, ...(options.args ?? [])],
    ...(options.env && { env: options.env }),
  });
  return {
    holdover,
    proxy: () => proxy,
    front,
    engine,
    async restartProxy() {
      await proxy.dispose();
      proxy = await start(Number(new URL(proxy.url).port));
    },
    async post(graph) {
      const { status, body } = await postPrompt(holdover.url, {
        prompt: graph,
        client_id: 'stacked',
      });
      expect([status, body.error]).toEqual([200, undefined]);
      return body.prompt_id;
    },
    remaining: async () => (await getJson(`${holdover.url}/prompt`)).exec_info.queue_remaining,
    async queue() {
      const { queue_running, queue_pending } = await getJson(`${holdover.url}/queue`);
      const ids = (items: [number, string][]) => items.map(([, id]) => id);
      return { running: ids(queue_running), pending: ids(queue_pending) };
    },
    async close() {
      await holdover.dispose();
      await proxy.dispose();
      await front.close();
      await engine.dispose();
    },
  };
}

/** `POST /queue` */
export function editQueue(holdover: Holdover, body: object): Promise<Response> {
  return fetch(`${holdover.url}/queue`, { method: 'POST', body: JSON.stringify(body) });
}
