import { mkdirSync, statSync } from 'node:fs';
import module from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { env, geteuid } from 'node:process';

/** Node 20 has none. */
type CompileCache = { enableCompileCache?(this: void, folder: string): unknown };

/**
 * Lets V8 reuse the code that it compiled at an earlier start, where Node can. The code is in the cache folder of the
 * user of this process. Without it a start takes longer; nothing else changes.
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
