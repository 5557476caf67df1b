import { describe, expect, test } from 'vitest';
import { counterIn, freeNames } from '../../src/translate/free-names.ts';

describe('a name that is taken', () => {
  test.each([
    ['ComfyUI_00001_.png', ['ComfyUI_00001_.png', 'ComfyUI_00002_.png', 'ComfyUI_00003_.png']],
    ['a_b_00099_.webp', ['a_b_00099_.webp', 'a_b_00100_.webp', 'a_b_00101_.webp']],
    ['big_99999_.png', ['big_99999_.png', 'big_100000_.png', 'big_100001_.png']],
    [
      'ComfyUI_temp_abcde_00001_.png',
      ['ComfyUI_temp_abcde_00001_.png', 'ComfyUI_temp_abcde_00002_.png'],
    ],
    ['video_00004_', ['video_00004_', 'video_00005_']],
    ['x.png', ['x.png', 'x (1).png', 'x (2).png']],
    ['a.tar.gz', ['a.tar.gz', 'a.tar (1).gz']],
    ['README', ['README', 'README (1)']],
    ['.hidden', ['.hidden', '.hidden (1)']],
    ['', ['', ' (1)']],
  ])('%s', (desired, expected) => {
    const names = freeNames(desired);
    expect(expected.map(() => names.next().value)).toEqual(expected);
  });
});

test.each([
  ['00001_.png', 1],
  ['00012', 12],
  ['999999999999999_.png', 999_999_999_999_999],
  ['99999999999999999999_00001_.png', 0],
  ['1.png', 0],
  ['x_00001_.png', 0],
  ['00003.json', 3],
])('the number of a file called <prefix>_%s is %i', (afterPrefix, number) => {
  expect(counterIn(afterPrefix)).toBe(number);
});
