import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import { FAST } from './holdover-before-hostile.ts';
import { type Balancer, openBalancer } from './round-robin.ts';
import { type HostileV2, openHostileV2 } from '../upstreams/hostile-v2.ts';
import { type Holdover, startHoldover } from './holdover.ts';
import { type RedisServer, startRedis } from './redis.ts';
import {
  type Recorder,
  type Received,
  connect,
  getJson,
  postPrompt,
} from '../clients/v1-client.ts';
import { flat } from '../graphs/workflows.ts';
import { staysRunning } from '../upstreams/job-scripts.ts';
import { useShared } from '../use-shared.ts';

/** Three servers on one ledger, in front of one upstream, behind one address. */
export type Replicas = {
  readonly redis: RedisServer;
  readonly upstream: HostileV2;
  readonly balancer: Balancer;
  readonly holdover: (index: number) => Holdover;
  /** One more that is not behind the address, with this in its environment. */
  join(env: NodeJS.ProcessEnv): Promise<Holdover>;
  /** Starts those again that were killed, at their ports. */
  restartKilled(): Promise<void>;
  close(): Promise<void>;
};

/** A stream may be silent for as long as a test looks at something else. */
const QUIET = { streamIdleTimeoutMs: 30_000, bodyIdleTimeoutMs: 30_000 };

/** Its clients are programs, which are shown previews like this only. */
export const PREVIEWS = ['--preview-method', 'auto'];

const PACE = {
  retryAfterMs: { least: 60, most: 400, unstated: 100 },
  notSentMs: { first: 50, last: 200 },
  searchMs: { first: 40, last: 120 },
  // Longer than a busy machine takes: a prompt whose search ends is answered 500.
  searchWindowMs: 10_000,
};

export async function openReplicas(options: { readonly count?: number } = {}): Promise<Replicas> {
  const { count = 3 } = options;
  const [redis, upstream] = await Promise.all([startRedis(), openHostileV2()]);
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-replicas-'));
  const limits = JSON.stringify({ upstream: { ...FAST, ...QUIET, outbox: PACE } });
  const start = (port = 0, env: NodeJS.ProcessEnv = {}): Promise<Holdover> =>
    startHoldover({
      upstream: 'embedded',
      dataDir,
      port,
      args: ['--upstream', upstream.url, '--limits', limits, ...PREVIEWS],
      env: { HOLDOVER_LEDGER: redis.url, ...env },
    });
  const replicas = await Promise.all(Array.from({ length: count }, () => start()));
  const balancer = await openBalancer(replicas.map(({ port }) => port));
  const dead = new Set<number>();
  const holdover = (index: number): Holdover => {
    const found = replicas[index];
    if (!found) throw new Error(`there is no replica ${index}`);
    return {
      ...found,
      async terminate() {
        dead.add(index);
        return found.terminate();
      },
      async kill9() {
        dead.add(index);
        await found.kill9();
      },
    };
  };
  return {
    redis,
    upstream,
    balancer,
    holdover,
    join: (env) => start(0, env),
    async restartKilled() {
      for (const index of dead) replicas[index] = await start(holdover(index).port);
      dead.clear();
    },
    async close() {
      await balancer.close();
      await Promise.all(replicas.map((one) => one.dispose()));
      await upstream.close();
      await redis.dispose();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Jobs run for as long as a test wants. */
export function useReplicas(count = 3): Replicas {
  const replicas = useShared(
    () => openReplicas({ count }),
    (replicas) => replicas.close(),
  );
  beforeAll(() => replicas.upstream.script(staysRunning));
  return replicas;
}

/** A client with a client id of its own: it posts prompts and opens sockets. */
export type TestUser = {
  readonly clientId: string;
  readonly headers: Record<string, string>;
  post(url: string, more?: object): Promise<string>;
  listen(wsUrl: string): Promise<Recorder>;
  get(url: string): Promise<any>;
};

let userCount = 0;

export function createTestUser(key?: string): TestUser {
  const clientId = `guest-${++userCount}`;
  const headers: Record<string, string> = key === undefined ? {} : { 'X-API-Key': key };
  return {
    clientId,
    headers,
    async post(url, more = {}) {
      const prompt = { prompt: flat(), client_id: clientId, ...more };
      const { status, body } = await postPrompt(url, prompt, { headers });
      if (status !== 200) throw new Error(`refused: ${JSON.stringify(body)}`);
      return body.prompt_id as string;
    },
    listen: (wsUrl) => connect(wsUrl, { clientId, headers }),
    get: (url) => getJson(url, headers),
  };
}

/** A frame without what differs from run to run: ids and times. */
export function frameText(frame: Received, promptId: string): string {
  if (frame.kind === 'binary') return `binary ${frame.bytes.toString('latin1')}`;
  return frame.text
    .replaceAll(promptId, 'PROMPT')
    .replaceAll(/"timestamp": \d+/g, '"timestamp": 0')
    .replaceAll(/"sid": "[^"]*"/g, '"sid": "S"');
}
