import type { Bench } from './bench.ts';
import { type Row, rounded } from './measure.ts';
import { measureCosts } from './scale-costs.ts';
import { type Installation, type Simulated, simulate } from './scale-simulation.ts';

const SOCKETS_PER_REPLICA = 1000;
const INSTALLATIONS: readonly Installation[] = [
  { sockets: 1000, replicas: 2, redisServers: 1 },
  { sockets: 5000, replicas: 5, redisServers: 1 },
  { sockets: 10_000, replicas: 10, redisServers: 1 },
  ...[1, 8, 16].map((redisServers) => ({
    sockets: 100_000,
    replicas: 100_000 / SOCKETS_PER_REPLICA,
    redisServers,
  })),
];

/** Measures what prompts and steps cost, and simulates installations that no one machine can hold. */
export const scale: Bench = {
  name: 'scale',
  needs: ['redis-server'],
  async run(context) {
    const costs = await measureCosts(context);
    const parts = Object.entries(costs).map(([part, { replicaUs, redisUs }]) => ({
      ...shown(`cost of a ${part}, in a replica and in Redis`, 'µs', replicaUs),
      reached: `${rounded(replicaUs)} and ${rounded(redisUs)} µs`,
    }));
    const rows = INSTALLATIONS.map((installation) =>
      rowOf(installation, simulate(costs, installation)),
    );
    return [...parts, ...rows];
  },
};

function rowOf({ sockets, replicas, redisServers }: Installation, simulated: Simulated): Row {
  const { redisLoad, replicaLoad, p99Ms, redisMegabytesPerSecond } = simulated;
  const percent = (share: number) => `${rounded(share * 100)} %`;
  return {
    ...shown(
      `${sockets} sockets, ${replicas} replicas, ${redisServers} Redis: p99 of a step`,
      'ms',
      p99Ms,
    ),
    reached:
      `Redis ${percent(redisLoad)} busy, ${rounded(redisMegabytesPerSecond)} MB/s; ` +
      `replicas ${percent(replicaLoad)}`,
  };
}

function shown(figure: string, unit: string, holdover: number): Row {
  return { bench: 'scale', figure, unit, holdover, reached: '', target: '–', holds: undefined };
}
