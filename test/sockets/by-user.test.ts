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
