import { definitionsOf } from '../../src/object-info/read.ts';
import type { DefinitionSource, Known } from '../../src/wire/definitions.ts';
import type { ObjectInfo } from '../../src/wire/v1.ts';

/** A source that always says the same. */
export function fixedDefinitions(info: ObjectInfo): DefinitionSource {
  const definitions = definitionsOf(info);
  const known = async (): Promise<Known> => ({
    ok: true,
    definitions,
    isStandIn: false,
    isStale: false,
  });
  return { known, refreshed: known, info: async () => info };
}
