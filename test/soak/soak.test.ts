// The short one: what a load of everything at once leaves must add up. `npm run soak` is the long
// one, which looks at memory and handles as well.
import { expect, test } from 'vitest';
import { accountingErrors } from './accounting.ts';
import { UPSTREAMS, startSoakTopology } from './topology.ts';
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
    const topology = await startSoakTopology(upstream);
    try {
      const load = await openLoad(topology.front, SIZE);
      await load.run();
      expect(await accountingErrors(topology.front, load, SIZE.jobs)).toEqual([]);
      load.close();
    } finally {
      await topology.dispose();
    }
  },
  600_000,
);
