import { expect, test } from 'vitest';
import { ByUser } from '../../src/sockets/by-user.ts';

test('counts the items of all users, however often one is added or deleted', () => {
  const items = new ByUser<string>();
  items.add('anna', 'a');
  items.add('anna', 'a');
  items.add('anna', 'b');
  items.add('ben', 'a');
  expect([items.size, items.of('anna').size]).toEqual([3, 2]);
  items.delete('ben', 'a');
  items.delete('ben', 'a');
  items.delete('anna', 'c');
  expect([items.size, items.has('ben'), [...items.all()]]).toEqual([2, false, ['a', 'b']]);
});

test('gives a user up, and items that are not retained', () => {
  const items = new ByUser<string>();
  for (const user of ['anna', 'ben']) for (const item of ['a', 'b']) items.add(user, item);
  expect([...items.take('anna')]).toEqual(['a', 'b']);
  expect([...items.take('anna')]).toEqual([]);
  items.retain(new Set(['b']));
  expect([items.size, [...items.users()], [...items.all()]]).toEqual([1, ['ben'], ['b']]);
});
