import { differencesOf } from './golden-compare.ts';
import type { Case, Meant } from './golden-differences.ts';
import { openGoldenHouse } from './golden-house.ts';
import { replay } from './golden-replay.ts';
import { scenarioOf } from './golden-scenario.ts';

type Found = { readonly [where: string]: readonly string[] };

/** Replays a case on a fresh server; `found` and `expected` are equal when all differences are meant. */
export async function playAgain(play: Case): Promise<{
  readonly found: Found;
  readonly expected: Found;
  readonly stalls: readonly string[];
}> {
  const scenario = scenarioOf(play.scenario);
  const house = await openGoldenHouse(play.args ?? [], scenario.inputs);
  try {
    const replayed = await replay(house.port, scenario);
    const found = await differencesOf(scenario, replayed, play.loosely);
    return {
      found: sorted(Object.entries(found)),
      expected: sorted(grouped(play.meant ?? [])),
      stalls: replayed.stalls,
    };
  } finally {
    await house.close();
  }
}

function grouped(meant: readonly Meant[]): [string, readonly string[]][] {
  const places = [...new Set(meant.map(({ where }) => where))];
  return places.map((place) => [
    place,
    meant.filter(({ where }) => where === place).flatMap(({ differs }) => differs),
  ]);
}

function sorted(places: readonly (readonly [string, readonly string[]])[]): Found {
  return Object.fromEntries(places.map(([where, differs]) => [where, differs.toSorted()]));
}
