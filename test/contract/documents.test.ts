import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

const FOLDER = new URL('../../fixtures/openapi/', import.meta.url);

test.each(['openapi-v2.yaml', 'openapi-cloud.yaml'])(
  '%s is the unchanged document that the README beside it names',
  async (name) => {
    const document = await readFile(new URL(name, FOLDER));
    const readme = await readFile(new URL('README.md', FOLDER), 'utf8');
    const row = readme.split('\n').find((line) => line.startsWith(`| \`${name}\``));
    expect(row).toContain(createHash('sha256').update(document).digest('hex'));
  },
);
