import { describe, expect, test } from 'vitest';
import { isStorageFull } from '../../src/lib/storage-errors.ts';

const coded = (code: string): Error => Object.assign(new Error('x'), { code });
const sqlite = (errcode: number): Error => Object.assign(new Error('x'), { errcode });
const caused = (cause: unknown): Error => new Error('it could not be written', { cause });

describe('full storage', () => {
  test.each([
    ['a full disk', coded('ENOSPC')],
    ['a quota', coded('EDQUOT')],
    ['a database on a full disk', sqlite(13)],
    ['the index of its log on a full disk', sqlite(4874)],
    ['a Redis out of memory', new Error("OOM command not allowed when used memory > 'maxmemory'.")],
    ['a Redis on a full disk', new Error('MISCONF Errors writing to the AOF file: No space left')],
    ['a cause of a cause', caused(caused(coded('ENOSPC')))],
  ])('is told by %s', (_, error) => expect(isStorageFull(error)).toBe(true));

  const endless = new Error('x');
  endless.cause = endless;
  test.each([
    ['another error of the disk', coded('EIO')],
    ['a damaged database', caused(sqlite(11))],
    ['no error at all', 'ENOSPC'],
    ['nothing', undefined],
    ['an error that is its own cause', endless],
  ])('is not told by %s', (_, error) => expect(isStorageFull(error)).toBe(false));
});
