import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { startRedis } from '../support/processes/redis.ts';
import { type JobScript, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { finish, preview, progressAt } from '../support/upstreams/job-scripts.ts';
import type { Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import type { Program } from './program.ts';
import { type RedisMeter, type RedisTraffic, meterRedis } from './redis-meter.ts';

/** Users of each replica, all with a socket. */
const USERS = 4;
const PROMPTS = 5;
const STEP_MS = 100;
const PAUSE_MS = 1500;
const PREVIEW_BYTES = 20_000;
const SETTLE_MS = 1500;

/** The cost of a prompt, on the average of all replicas. */
export type PromptCost = RedisTraffic & {
  /** Processor time of its replica, and of Redis. */
  readonly replicaUs: number;
  readonly redisUs: number;
};

export type Load = {
  readonly replicas: number;
  /** Where a user posts: 0 at the replica that has the user's socket, 1 at the next one. */
  readonly postsAt: 0 | 1;
  readonly steps: number;
  readonly previews: 'with previews' | 'without previews';
};

/** Runs a constant load for each replica, over one Redis and in front of one service. */
export async function measureLoad({ workDir, keep }: Context, load: Load): Promise<PromptCost> {
  const [redis, upstream] = await Promise.all([startRedis(), openHostileV2()]);
  upstream.script(steadyJob(load));
  const meters: RedisMeter[] = [];
  const programs: Program[] = [];
  const control = new Redis(redis.url);
  try {
    for (let i = 0; i < load.replicas; i++) {
      const meter = await meterRedis(redis.port);
      meters.push(meter);
      const args = ['--upstream', upstream.url, '--ledger', meter.url, '--preview-method', 'auto'];
      const dataDir = `${workDir}/shared`;
      programs.push(await keep(startHoldover({ workDir, dataDir, args })));
    }
    const users = await openSockets(programs.map(({ url }) => url));
    await delay(SETTLE_MS);
    const snapshot = () => takeSnapshot({ meters, programs, control });
    const before = await snapshot();
    await Promise.all(users.map((user) => runUser(user, programs, load)));
    await delay(SETTLE_MS);
    const after = await snapshot();
    for (const { recorder } of users) await recorder.close();
    return perPrompt(before, after, load);
  } finally {
    control.disconnect();
    await Promise.all(programs.map((program) => program.stop()));
    for (const meter of meters) meter.close();
    await upstream.close();
    await redis.dispose();
  }
}

type Parts = {
  readonly meters: readonly RedisMeter[];
  readonly programs: readonly Program[];
  readonly control: Redis;
};

async function takeSnapshot({ meters, programs, control }: Parts): Promise<PromptCost> {
  const traffic = meters.map((meter) => meter.traffic());
  const sum = (figure: keyof RedisTraffic) => traffic.reduce((all, one) => all + one[figure], 0);
  const info = await control.info('cpu');
  const seconds = ['user', 'sys'].map((kind) =>
    Number(new RegExp(`used_cpu_${kind}:([\\d.]+)`).exec(info)?.[1] ?? 0),
  );
  return {
    commands: sum('commands'),
    sentBytes: sum('sentBytes'),
    receivedBytes: sum('receivedBytes'),
    replicaUs: programs.reduce((all, program) => all + program.cpuNs() / 1000, 0),
    redisUs: seconds.reduce((all, one) => all + one, 0) * 1e6,
  };
}

type User = { readonly key: string; readonly replica: number; readonly recorder: Recorder };

async function openSockets(urls: readonly string[]): Promise<User[]> {
  const users: Promise<User>[] = [];
  for (const [replica, url] of urls.entries()) {
    for (let i = 0; i < USERS; i++) {
      const key = `key-${replica}-${i}`;
      const wsUrl = url.replace(/^http/, 'ws');
      const socket = connect(wsUrl, { clientId: key, headers: { 'X-API-Key': key } });
      users.push(socket.then((recorder) => ({ key, replica, recorder })));
    }
  }
  return Promise.all(users);
}

async function runUser(
  { key, recorder, replica }: User,
  programs: readonly Program[],
  { postsAt, steps }: Load,
): Promise<void> {
  const url = programs[(replica + postsAt) % programs.length]?.url ?? '';
  for (let i = 0; i < PROMPTS; i++) {
    const pace = delay(steps * STEP_MS + PAUSE_MS);
    const body = { prompt: flat({ prefix: `${key}-${i}` }), client_id: key };
    const { status, body: answer } = await postPrompt(url, body, { headers: { 'X-API-Key': key } });
    if (status !== 200) throw new Error(`a prompt was refused: ${JSON.stringify(answer)}`);
    await recorder.untilDone(answer.prompt_id as string, 60_000);
    await pace;
  }
}

/** Shows its steps at a pace that does not depend on how many run. */
function steadyJob({ steps, previews }: Load): JobScript {
  const picture = preview(Buffer.alloc(PREVIEW_BYTES, 'p'));
  return async (job, server) => {
    server.change(job.id, { status: 'running' });
    for (let step = 1; step <= steps; step++) {
      await delay(STEP_MS);
      server.emit(job.id, 'progress', progressAt(step, steps));
      if (previews === 'with previews') server.emit(job.id, 'preview', picture);
    }
    finish(server, job);
  };
}

function perPrompt(before: PromptCost, after: PromptCost, { replicas }: Load): PromptCost {
  const of = (figure: keyof PromptCost): number =>
    (after[figure] - before[figure]) / (replicas * USERS * PROMPTS);
  return {
    commands: of('commands'),
    sentBytes: of('sentBytes'),
    receivedBytes: of('receivedBytes'),
    replicaUs: of('replicaUs'),
    redisUs: of('redisUs'),
  };
}
