// The short one: what a load of everything at once leaves must add up. `npm run soak` is the long
// one, which also runs the engine without a service around it, and looks at memory and handles.
import { expect, test } from 'vitest';
import { accountingErrors } from './accounting.ts';
import { startSoakTopology } from './topology.ts';
import { type Size, openLoad } from './load.ts';

const SIZE: Size = {
  jobs: 30,
  sockets: 12,
  users: 4,
  spreadMs: 0,
  atOnce: 12,
  patienceMs: 240_000,
};

test('every prompt of a crowd has one end, one history entry and its file', async () => {
  const topology = await startSoakTopology('remote');
  try {
    const load = await openLoad(topology.front, SIZE);
    await load.run();
    expect(await accountingErrors(topology.front, load, SIZE.jobs)).toEqual([]);
    load.close();
  } finally {
    await topology.dispose();
  }
}, 600_000);
