import { toDefinitions } from '../../../src/definitions/parse-definitions.ts';
import type { DefinitionSource, DefinitionsResult } from '../../../src/definitions/definitions.ts';
import type { ObjectInfo } from '../../../src/protocol/v1.ts';

/** A source that always says the same. */
export function fixedDefinitions(info: ObjectInfo): DefinitionSource {
  const definitions = toDefinitions(info);
  const known = async (): Promise<DefinitionsResult> => ({
    ok: true,
    definitions,
    isEmbeddedFallback: false,
    isStale: false,
  });
  return { current: known, refreshed: known, info: async () => info };
}
