import { mkdirSync, statSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env, geteuid } from 'node:process';

/** Node 20 has none. */
type CompileCache = { enableCompileCache?(this: void, folder: string): unknown };

/**
 * Lets V8 take up what it compiled at an earlier start, where Node can. It lies in the cache folder of the user
 * who runs this process; one that cannot be used changes nothing but the time of a start.
 */
export function useCompileCache(): void {
  const { enableCompileCache } = module as CompileCache;
  if (enableCompileCache === undefined) return;
  try {
    const folder = join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'holdover');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Code is run from it: it must not be another user's.
    if (statSync(folder).uid === geteuid?.()) enableCompileCache(folder);
  } catch {
    // Without a home or on a read-only disk, everything is compiled again.
  }
}
