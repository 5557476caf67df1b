import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SUCCESSORS, type Successor } from '../../src/migration/successors.ts';

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/** One line for all routes with the same fate, as `npx vitest` prints it when the README has another. */
function tableOf(successors: { readonly [route: string]: Successor }): string {
  const groups = new Map<string, string[]>();
  for (const [route, { call, lacks = '–' }] of Object.entries(successors)) {
    const fate = `${call === null ? 'none' : `\`${call}\``} | ${lacks}`;
    groups.set(fate, [...(groups.get(fate) ?? []), `\`${route}\``]);
  }
  const rows = [...groups].map(([fate, routes]) => `| ${routes.join(', ')} | ${fate} |`);
  return ['| v1 call | v2 call | what v2 lacks of it |', '|---|---|---|', ...rows].join('\n');
}

test('the README shows what takes the place of every v1 call, as headers and report say', () => {
  const shown = /^\| v1 call \| v2 call \| what v2 lacks.*\n(?:\|.*\n)*/m.exec(README)?.[0].trim();
  expect(shown).toBe(tableOf(SUCCESSORS));
});
