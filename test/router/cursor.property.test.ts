import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createCatalog, createCursors } from '../../src/router/catalog.ts';
import { MODEL_SEGMENT } from '../../src/protocol/router.ts';
import { SECRET, model } from './open.ts';

const cursors = createCursors(SECRET);
const segment = fc.stringMatching(MODEL_SEGMENT);
const id = fc
  .tuple(
    segment.filter((text) => text.length <= 64),
    segment.filter((text) => text.length <= 128),
  )
  .map((parts) => parts.join('/'));

test('a cursor stands for its id, in the characters and the length the contract allows', () => {
  const longest = `${'p'.repeat(64)}/${'m'.repeat(128)}`;
  fc.assert(
    fc.property(fc.oneof(id, fc.constant(longest)), (each) => {
      const cursor = cursors.write(each);
      expect(cursor).toMatch(/^[A-Za-z0-9._~+/=-]{1,512}$/);
      expect(cursors.read(cursor)).toBe(each);
    }),
  );
});

test('what was not handed out is not read, be it changed in a single character', () => {
  fc.assert(
    fc.property(id, fc.nat(), fc.constantFrom(...Array.from('Az09-_.=')), (each, at, character) => {
      const cursor = cursors.write(each);
      const place = at % cursor.length;
      const changed = cursor.slice(0, place) + character + cursor.slice(place + 1);
      fc.pre(changed !== cursor);
      expect(cursors.read(changed)).toBeUndefined();
    }),
  );
});

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
        const catalog = createCatalog(
          names.map((each) => model({ model: each })),
          cursors,
        );
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
