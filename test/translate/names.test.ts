import { describe, expect, test } from 'vitest';
import { freeName, freeNames } from '../../src/translate/names.ts';

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

  test('the first free name is taken', () => {
    const taken = new Set(['ComfyUI_00001_.png', 'ComfyUI_00002_.png']);
    expect(freeName('ComfyUI_00001_.png', (name) => taken.has(name))).toBe('ComfyUI_00003_.png');
    expect(freeName('new.png', (name) => taken.has(name))).toBe('new.png');
  });
});
