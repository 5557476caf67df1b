import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse, parseAllDocuments } from 'yaml';

export const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/** The objects of a folder with a `kustomization.yaml`, as `kubectl apply -k` makes them but for labels and images. */
export function objectsOf(folder: string): readonly any[] {
  const { resources, patches = [] } = parse(
    readFileSync(join(folder, 'kustomization.yaml'), 'utf8'),
  );
  const objects: any[] = resources.flatMap((name: string) => resourceAt(join(folder, name)));
  return patches.reduce(
    (all: readonly any[], { target, path, patch }: Patch) =>
      applied(all, target, parse(patch ?? readFileSync(join(folder, path ?? ''), 'utf8'))),
    objects,
  );
}

function resourceAt(path: string): readonly any[] {
  if (statSync(path).isDirectory()) return objectsOf(path);
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS());
}

type Patch = { readonly target: Target; readonly path?: string; readonly patch?: string };
type Target = { readonly kind: string; readonly name: string };
type Operation = { readonly op: string; readonly path: string; readonly value: unknown };

/** A list of operations (RFC 6902), or an object that is to be deleted. */
function applied(
  objects: readonly any[],
  target: Target,
  patch: readonly Operation[] | { readonly $patch?: string },
): readonly any[] {
  // As kustomize reads it: the whole name.
  const name = new RegExp(`^(?:${target.name})$`);
  const isTarget = (one: any): boolean => one.kind === target.kind && name.test(one.metadata.name);
  if (!objects.some(isTarget)) throw new Error(`there is no ${target.kind} ${target.name}`);
  if (!Array.isArray(patch)) {
    if (!('$patch' in patch) || patch.$patch !== 'delete') throw new Error('no known patch');
    return objects.filter((one) => !isTarget(one));
  }
  return objects.map((one) => (isTarget(one) ? patched(one, patch) : one));
}

function patched(object: any, operations: readonly Operation[]): any {
  const result = structuredClone(object);
  for (const { op, path, value } of operations) {
    const steps = path.split('/').slice(1);
    const last = steps.pop() ?? '';
    const parent = steps.reduce((at, step) => at[step], result);
    if (op === 'add' && last === '-') parent.push(value);
    else if (op === 'add' && !(last in parent)) parent[last] = value;
    else if (op === 'replace' && last in parent) parent[last] = value;
    else if (op !== 'test' || parent[last] !== value) throw new Error(`${op} ${path} fails`);
  }
  return result;
}

/** The complaints of the compiler about objects as literals of their published types: a wrong name is one. */
export function complaintsAbout(objects: readonly any[]): string {
  const temporary = mkdtempSync(join(tmpdir(), 'holdover-kubernetes-'));
  try {
    symlinkSync(join(PROJECT, 'node_modules'), join(temporary, 'node_modules'));
    const lines = objects.flatMap((each, at) => [
      `import type { I${each.kind} as T${at} } from 'kubernetes-models/${each.apiVersion}/${each.kind}';`,
      `export const object${at}: T${at} = ${JSON.stringify(each)};`,
    ]);
    writeFileSync(join(temporary, 'objects.ts'), lines.join('\n'));
    const flags = '--noEmit --strict --skipLibCheck --module nodenext --types node --ignoreConfig';
    const tsc = join(PROJECT, 'node_modules/.bin/tsc');
    const { stdout } = spawnSync(tsc, [...flags.split(' '), join(temporary, 'objects.ts')], {
      encoding: 'utf8',
      cwd: temporary,
    });
    return stdout;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}
