// The short one: what a load of everything at once leaves must add up. `npm run soak` is the long
// one, which looks at memory and handles as well.
import { expect, test } from 'vitest';
import { unaccounted } from './accounts.ts';
import { UPSTREAMS, openHouses } from './houses.ts';
import { type Size, openLoad } from './load.ts';

const SIZE: Size = {
  jobs: 60,
  sockets: 24,
  users: 4,
  spreadMs: 0,
  atOnce: 24,
  patienceMs: 240_000,
};

test.concurrent.each(UPSTREAMS)(
  'every prompt of a crowd has one end, one history entry and its file: %s',
  async (upstream) => {
    const houses = await openHouses(upstream);
    try {
      const load = await openLoad(houses.front, SIZE);
      await load.run();
      expect(await unaccounted(houses.front, load, SIZE.jobs)).toEqual([]);
      load.close();
    } finally {
      await houses.dispose();
    }
  },
  600_000,
);
