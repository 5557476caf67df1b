import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A test or helper that imports one of these starts processes, opens ports or calls servers. */
const SLOW_MODULES = new Set([
  'ioredis',
  'koa',
  'node:child_process',
  'node:http',
  'node:https',
  'node:net',
  'node:tls',
  'playwright-core',
  'undici',
]);
/** The built server, and the parts of the source that assemble one. */
const SLOW_PATHS = /^(dist|src\/app|src\/cli)\//;

const IMPORTS = /^(?:import|export) (?!type )[^;]*? from '([^']+)';|\bimport\('([^']+)'\)/gm;
/** `import { type A, type B } from …` imports nothing at run time. */
const TYPES_ONLY = /^import \{(\s*type [^,}]+,?)+\s*\}/;

/**
 * Paths of the tests that start no process and open no port, relative to the project. A test is one of them
 * unless it, or a helper below `test` that it imports, imports something that does either.
 */
export function fastTests(): readonly string[] {
  return testsIn('test').filter((path) => !isSlow(path));
}

function testsIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return testsIn(path);
    return path.endsWith('.test.ts') ? [path] : [];
  });
}

function isSlow(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path)) return false;
  seen.add(path);
  const text = readFileSync(path, 'utf8');
  return /\bfetch\(/.test(text) || importsOf(text).some((name) => isSlowImport(path, name, seen));
}

function isSlowImport(path: string, name: string, seen: Set<string>): boolean {
  if (!name.startsWith('.')) return SLOW_MODULES.has(name);
  const imported = join(dirname(path), name);
  if (SLOW_PATHS.test(imported)) return true;
  return imported.startsWith('test/') && isSlow(imported, seen);
}

function importsOf(text: string): readonly string[] {
  return [...text.matchAll(IMPORTS)]
    .filter(([statement]) => !TYPES_ONLY.test(statement))
    .map(([, from, dynamic]) => from ?? dynamic ?? '');
}
