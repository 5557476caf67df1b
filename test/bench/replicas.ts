import type { Bench } from './bench.ts';
import { type Row, rounded } from './measure.ts';
import { type PromptCost, measureLoad } from './replica-load.ts';
import type { RedisTraffic } from './redis-meter.ts';

const REPLICAS = [1, 2, 4] as const;
const STEPS = 10;
/** The load of a replica is constant: more replicas may cost it so much more. */
const MOST = 1.2;

const PLACES = { 'posts where its socket is': 0, 'posts at another replica': 1 } as const;

type Place = keyof typeof PLACES;

/** The exchange of one of several replicas with Redis for a constant load of its own. */
export const replicas: Bench = {
  name: 'replicas',
  needs: ['redis-server'],
  async run(context) {
    const rows: Row[] = [];
    for (const place of Object.keys(PLACES) as Place[]) {
      const postsAt = PLACES[place];
      const counts = REPLICAS.filter((count) => count > postsAt);
      const costs: PromptCost[] = [];
      for (const count of counts) {
        const load = { replicas: count, postsAt, steps: STEPS, previews: 'with previews' } as const;
        costs.push(await measureLoad(context, load));
      }
      rows.push(...rowsOf(place, counts, costs));
    }
    return rows;
  },
};

const FIGURES = {
  commands: { unit: 'commands', divisor: 1 },
  sentBytes: { unit: 'KB to Redis', divisor: 1000 },
  receivedBytes: { unit: 'KB from Redis', divisor: 1000 },
} as const satisfies Record<keyof RedisTraffic, object>;

function rowsOf(place: Place, counts: readonly number[], costs: readonly PromptCost[]): Row[] {
  const [least = 0] = counts;
  return (Object.keys(FIGURES) as (keyof RedisTraffic)[]).flatMap((figure) => {
    const { unit, divisor } = FIGURES[figure];
    const first = costs[0]?.[figure] ?? Number.NaN;
    return counts.map((count, i): Row => {
      const value = costs[i]?.[figure] ?? Number.NaN;
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
