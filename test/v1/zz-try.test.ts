import { writeFileSync } from 'node:fs';
import { test } from 'vitest';
import { differencesOf } from '../support/golden-compare.ts';
import { openGoldenHouse } from '../support/golden-house.ts';
import { replay } from '../support/golden-replay.ts';
import { scenarioOf } from '../support/golden-scenario.ts';
const NAMES = (process.env['TRY'] ?? 'normal-run').split(',');
test.each(NAMES)(
  '%s',
  async (name) => {
    const scenario = scenarioOf(name);
    const args =
      name === 'cors-mode'
        ? ['--enable-cors-header']
        : name === 'http-generic'
          ? ['--max-upload-size', '1']
          : [];
    const house = await openGoldenHouse(args, scenario.inputs);
    const t = performance.now();
    const replayed = await replay(house.port, scenario);
    const d = await differencesOf(scenario, replayed, JSON.parse(process.env['LOOSE'] ?? '{}'));
    console.log(
      name,
      Math.round(performance.now() - t),
      'ms',
      JSON.stringify(d, null, 1),
      replayed.stalls,
    );
    await house.close();
  },
  60000,
);
