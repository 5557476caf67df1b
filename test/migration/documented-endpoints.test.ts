import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { V1_ROUTES, type Successor } from '../../src/migration/v1-routes.ts';

const PAGE = readFileSync(new URL('../../docs/migrating.md', import.meta.url), 'utf8');

/** One line for all routes with the same v2 call. */
function tableOf(successors: { readonly [route: string]: Successor }): string {
  const groups = new Map<string, string[]>();
  for (const [route, { call, lacks = '–' }] of Object.entries(successors)) {
    const cells = `${call === null ? 'none' : `\`${call}\``} | ${lacks}`;
    groups.set(cells, [...(groups.get(cells) ?? []), `\`${route}\``]);
  }
  const rows = [...groups].map(([cells, routes]) => `| ${routes.join(', ')} | ${cells} |`);
  return ['| v1 call | v2 call | what v2 lacks of it |', '|---|---|---|', ...rows].join('\n');
}

const TABLE = /^\| v1 call \| v2 call \| what v2 lacks.*\n(?:\|.*\n)*/m;

// `npm run settings` writes it.
test('docs/migrating.md shows what takes the place of every v1 call, as headers and report say', async () => {
  const shown = PAGE.replace(TABLE, () => `${tableOf(V1_ROUTES)}\n`);
  await expect(shown).toMatchFileSnapshot('../../docs/migrating.md');
});
