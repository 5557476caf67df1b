import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Catalog } from '../../src/router/catalog.ts';
import { model } from './open.ts';

test('a walk sees each model that stays exactly once, however the catalogue changes on the way', () => {
  const name = fc.integer({ min: 0, max: 40 }).map((n) => `m${String(n).padStart(2, '0')}`);
  const versions = fc.array(fc.uniqueArray(name, { maxLength: 30 }), {
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(versions, fc.integer({ min: 1, max: 5 }), (catalogues, limit) => {
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let step = 0; step < 60; step++) {
        // The last version stays: the walk comes to an end.
        const names = catalogues[Math.min(step, catalogues.length - 1)] ?? [];
        const models = names.map((each) => model({ model: each }));
        const catalog = new Catalog(models, Buffer.from('secret'));
        const query = new URLSearchParams({ limit: String(limit), ...(cursor && { cursor }) });
        const page = JSON.parse(String(catalog.page(query, () => true).body));
        seen.push(...page.data.map((entry: { model: string }) => entry.model));
        if (!page.has_more) break;
        cursor = page.next_cursor;
      }
      expect(seen).toEqual([...new Set(seen)].toSorted());
      const stays = catalogues.reduce((kept, names) => kept.filter((each) => names.includes(each)));
      expect(seen).toEqual(expect.arrayContaining(stays));
    }),
  );
});
