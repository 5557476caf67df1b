import { setTimeout as delay } from 'node:timers/promises';
import { type Recorder, connect, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { startRedis } from '../support/processes/redis.ts';
import { type HostileV2, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { finish, preview, progressAt } from '../support/upstreams/job-scripts.ts';
import type { Bench, Context } from './bench.ts';
import { startHoldover } from './holdover.ts';
import { type Row, rounded } from './measure.ts';
import { type RedisMeter, type RedisTraffic, meterRedis } from './redis-meter.ts';

const REPLICAS = [1, 2, 4] as const;
const USERS = 4;
const PROMPTS = 5;
const EVERY_MS = 2500;
const STEPS = 10;
const STEP_MS = 100;
const PREVIEW = preview(Buffer.alloc(20_000, 'p'));
const SETTLE_MS = 1500;
/** The load of a replica is constant: more replicas may cost it so much more. */
const MOST = 1.2;

/** Where a user posts: at the replica that has the user's socket, or at the next one. */
const PLACES = { 'posts where its socket is': 0, 'posts at another replica': 1 } as const;

type Place = keyof typeof PLACES;

/** What one of several replicas exchanges with Redis for a constant load of its own. */
export const replicas: Bench = {
  name: 'replicas',
  needs: ['redis-server'],
  async run(context) {
    const rows: Row[] = [];
    for (const place of Object.keys(PLACES) as Place[]) {
      const counts = REPLICAS.filter((count) => count > PLACES[place]);
      const traffic: RedisTraffic[] = [];
      for (const count of counts) traffic.push(await measure(context, count, place));
      rows.push(...rowsOf(place, counts, traffic));
    }
    return rows;
  },
};

const FIGURES = {
  commands: { unit: 'commands', divisor: 1 },
  sentBytes: { unit: 'KB to Redis', divisor: 1000 },
  receivedBytes: { unit: 'KB from Redis', divisor: 1000 },
} as const satisfies Record<keyof RedisTraffic, object>;

function rowsOf(place: Place, counts: readonly number[], traffic: readonly RedisTraffic[]): Row[] {
  const [least = 0] = counts;
  return (Object.keys(FIGURES) as (keyof RedisTraffic)[]).flatMap((figure) => {
    const { unit, divisor } = FIGURES[figure];
    const first = traffic[0]?.[figure] ?? Number.NaN;
    return counts.map((count, i): Row => {
      const value = traffic[i]?.[figure] ?? Number.NaN;
      return {
        bench: 'replicas',
        figure: `one of ${count}, a prompt of ${STEPS} steps; its user ${place}`,
        unit,
        holdover: value / divisor,
        reference: { name: `one of ${least}`, value: first / divisor },
        reached: `${rounded(value / first)}×`,
        target: `≤ ${MOST}×`,
        holds: value / first <= MOST,
      };
    });
  });
}

/** For each prompt of its load, the average of all replicas. */
async function measure({ workDir, keep }: Context, count: number, place: Place) {
  const [redis, upstream] = await Promise.all([startRedis(), openHostileV2()]);
  upstream.script(steadyJob);
  const meters: RedisMeter[] = [];
  try {
    const urls: string[] = [];
    for (let i = 0; i < count; i++) {
      const meter = await meterRedis(redis.port);
      meters.push(meter);
      const args = ['--upstream', upstream.url, '--ledger', meter.url, '--preview-method', 'auto'];
      urls.push((await keep(startHoldover({ workDir, dataDir: `${workDir}/shared`, args }))).url);
    }
    const sockets = await openSockets(urls);
    await delay(SETTLE_MS);
    const before = meters.map((meter) => meter.traffic());
    await Promise.all(
      sockets.map((user) => runUser(user, { urls, postsAt: user.replica + PLACES[place] })),
    );
    await delay(SETTLE_MS);
    const after = meters.map((meter) => meter.traffic());
    for (const { recorder } of sockets) await recorder.close();
    return perPrompt(before, after);
  } finally {
    for (const meter of meters) meter.close();
    await upstream.close();
    await redis.dispose();
  }
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
  { key, recorder }: User,
  { urls, postsAt }: { readonly urls: readonly string[]; readonly postsAt: number },
): Promise<void> {
  const url = urls[postsAt % urls.length] ?? '';
  for (let i = 0; i < PROMPTS; i++) {
    const pace = delay(EVERY_MS);
    const body = { prompt: flat({ prefix: `${key}-${i}` }), client_id: key };
    const { status, body: answer } = await postPrompt(url, body, { headers: { 'X-API-Key': key } });
    if (status !== 200) throw new Error(`a prompt was refused: ${JSON.stringify(answer)}`);
    await recorder.untilDone(answer.prompt_id as string, 60_000);
    await pace;
  }
}

/** Shows its steps at a pace that does not depend on how many run. */
async function steadyJob(job: Parameters<typeof finish>[1], server: HostileV2): Promise<void> {
  server.change(job.id, { status: 'running' });
  for (let step = 1; step <= STEPS; step++) {
    await delay(STEP_MS);
    server.emit(job.id, 'progress', progressAt(step, STEPS));
    server.emit(job.id, 'preview', PREVIEW);
  }
  finish(server, job);
}

function perPrompt(before: readonly RedisTraffic[], after: readonly RedisTraffic[]): RedisTraffic {
  const average = (figure: keyof RedisTraffic): number => {
    const sum = after.reduce(
      (total, one, i) => total + one[figure] - (before[i]?.[figure] ?? 0),
      0,
    );
    return sum / after.length / (USERS * PROMPTS);
  };
  return {
    commands: average('commands'),
    sentBytes: average('sentBytes'),
    receivedBytes: average('receivedBytes'),
  };
}
