import { afterAll, expect, test } from 'vitest';
import { differencesOf } from './golden-compare.ts';
import type { Case, ExpectedDifference } from './golden-differences.ts';
import { closeEngines, startGoldenServer } from './golden-server.ts';
import { replay } from './golden-replay.ts';
import { scenarioOf } from './golden-scenario.ts';

type DifferencesByPlace = { readonly [where: string]: readonly string[] };

/** Tests that each case is answered as recorded, or as docs/differences.md says. */
export function testCases(cases: readonly Case[]): void {
  afterAll(closeEngines);

  test.each(cases)(
    '$scenario',
    async (golden) => {
      const { found, expected } = await replayCase(golden);
      expect(found).toEqual(expected);
    },
    30_000,
  );
}

/** Replays a case on a fresh server; `found` and `expected` are equal when all differences are meant. */
async function replayCase(golden: Case): Promise<{
  readonly found: DifferencesByPlace;
  readonly expected: DifferencesByPlace;
}> {
  const { refused = [], without = [], ...tolerances } = golden.tolerances ?? {};
  const recorded = scenarioOf(golden.scenario, golden.recordings);
  const steps = recorded.steps.map((step) =>
    step.kind === 'http' && refused.includes(step.index)
      ? { ...step, exchange: { ...step.exchange, bodyText: '[]' } }
      : step,
  );
  const scenario = { ...recorded, steps };
  const assets = golden.recordings === undefined ? ['--limits', '{"assets":false}'] : [];
  const server = await startGoldenServer([...(golden.args ?? []), ...assets], scenario.inputs);
  try {
    const replayed = await replay(server.port, scenario);
    const found = await differencesOf(scenario, replayed, {
      ...tolerances,
      without: [...without, ...refused],
    });
    return {
      found: sorted(Object.entries(found)),
      expected: sorted(grouped(golden.expectedDifferences ?? [])),
    };
  } finally {
    await server.close();
  }
}

function grouped(
  expectedDifferences: readonly ExpectedDifference[],
): [string, readonly string[]][] {
  const places = [...new Set(expectedDifferences.map(({ where }) => where))];
  return places.map((place) => [
    place,
    expectedDifferences.filter(({ where }) => where === place).flatMap(({ differs }) => differs),
  ]);
}

function sorted(places: readonly (readonly [string, readonly string[]])[]): DifferencesByPlace {
  return Object.fromEntries(places.map(([where, differs]) => [where, differs.toSorted()]));
}
