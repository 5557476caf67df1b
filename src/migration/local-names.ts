import { posix } from 'node:path';

/** File names beside the code, each given once. */
export type LocalNames = { reserve(requested: string): string };

/** `cat.png`, `cat-2.png` … */
export function createLocalNames(): LocalNames {
  const taken = new Set<string>();
  return {
    reserve(requested) {
      const safe = safePath(requested);
      const { dir, name, ext } = posix.parse(safe);
      let path = safe;
      for (let number = 2; taken.has(path.toLowerCase()); number++) {
        path = posix.join(dir, `${name}-${number}${ext}`);
      }
      taken.add(path.toLowerCase());
      return path;
    },
  };
}

/** Where an uploaded file lies beside the code. */
export function inputPathOf(filePath: string): string {
  return posix.join('inputs', safePath(filePath));
}

/** Names come from clients: nothing climbs out of its folder, or means something to a shell or to sed. */
function safePath(path: string): string {
  const parts = path.split(/[\\/]/).map((part) => part.replaceAll(/[^\p{L}\p{N}_.-]/gu, '_'));
  const safe = parts.map((part) => part.replace(/^[.-]+/, '_')).filter((part) => part !== '');
  return safe.join('/') || 'file';
}
