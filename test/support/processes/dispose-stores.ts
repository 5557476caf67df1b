import { afterAll } from 'vitest';
import { testedUpstream } from '../upstreams/tested-upstream.ts';

/** Set up for each test file: the stores that its stacks shared end with it. */
if (testedUpstream() === 'stack') {
  afterAll(async () => {
    const { disposeStores } = await import('./shared-stores.ts');
    await disposeStores();
  });
}
