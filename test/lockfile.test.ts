import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

type Package = {
  version?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
};

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const { packages } = read('package-lock.json') as { packages: Record<string, Package> };
const manifest = read('package.json') as Record<string, Record<string, string>>;

describe('a newcomer can run npm ci', () => {
  test('the lock file names no registry host', () => {
    expect(
      Object.entries(packages).filter(([, { resolved }]) => resolved?.startsWith('http')),
    ).toEqual([]);
  });

  // A registry that lacks builds for other platforms lets `npm install` leave them out of the lock
  // file, and `npm ci` then refuses to run anywhere.
  test('it has every optional package of other platforms', () => {
    const wanted = Object.values(packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    );
    const missing = wanted.filter(
      (name) => !Object.keys(packages).some((path) => path.endsWith(`node_modules/${name}`)),
    );
    expect(missing).toEqual([]);
  });

  test.each(['dependencies', 'devDependencies'])('%s are exact versions', (group) => {
    const loose = Object.entries(manifest[group] ?? {}).filter(
      ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
    );
    expect(loose).toEqual([]);
  });
});
