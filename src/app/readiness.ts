import type { NeededParts } from '../v1/health.ts';
import type { Services } from './services.ts';

/** No prompt has it: reading it shows that the ledger can be read. */
const NO_PROMPT = 'readyz';

/** The parts of this server that `/readyz` tells of, beside the upstream. */
export function neededParts({ config, ledger, store }: Services): NeededParts {
  const { links } = store;
  const isEmbedded = config.upstream.kind === 'embedded';
  return {
    ledger: { kind: config.ledger.kind, check: () => ledger.prompts.get(NO_PROMPT) },
    ...(isEmbedded && {
      queue: links
        ? { kind: 'redis', check: () => links.commands.ping() }
        : { kind: 'process', check: async () => {} },
    }),
    files: { kind: 'folder', check: async () => store.checkDataDir() },
  };
}
