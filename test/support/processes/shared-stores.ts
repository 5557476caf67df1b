import { type StackStores, startStores } from './stack-stores.ts';

/**
 * Stores that the stacks of a test file have one after the other, as to start them takes time.
 * A stack that is killed gets its own again when it is started again.
 */
const all = new Set<StackStores>();
const free: StackStores[] = [];
const killed = new Map<string, StackStores>();

/** Empty ones; or those that were killed with the stack that had this folder, with their data. */
export async function takeStores(root: string | undefined): Promise<StackStores> {
  const former = root === undefined ? undefined : killed.get(root);
  if (root === undefined || former === undefined) return free.pop() ?? startMore();
  killed.delete(root);
  await Promise.all([former.redis.restart(), former.bucket.restart()]);
  return former;
}

async function startMore(): Promise<StackStores> {
  const stores = await startStores();
  all.add(stores);
  return stores;
}

/** With the stack that has this folder. */
export async function killStores(stores: StackStores, root: string | undefined): Promise<void> {
  await Promise.all([stores.redis.kill9(), stores.bucket.kill9()]);
  if (root !== undefined) killed.set(root, stores);
}

/** Another stack may have them. */
export async function freeStores(stores: StackStores): Promise<void> {
  await stores.empty();
  free.push(stores);
}

/** Ends all of them, when no stack is left; the next test file of this process starts others. */
export async function disposeStores(): Promise<void> {
  const disposed = [...all];
  all.clear();
  killed.clear();
  free.length = 0;
  await Promise.all(disposed.map((stores) => stores.dispose()));
}
