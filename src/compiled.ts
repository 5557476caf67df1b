/**
 * Where a compiled file lies, seen from a module one folder deep: a source, what `tsc` made of it, or
 * a piece of the bundle. Threads of Node 20 cannot load TypeScript.
 */
export function compiledUrl(path: string, from: string): URL {
  return new URL(`${from.endsWith('.ts') ? '../../dist' : '..'}/${path}`, from);
}
