import { describe, expect, test } from 'vitest';
import { segmentsOf } from '../../src/models/local/text.ts';

const TEXTS = {
  English: 'The quick fox jumps, etc. and so on. It’s 3.14 o’clock!  “Really?” ',
  'lines of all kinds': 'one\r\ntwo\n\n\tthree\r four ',
  'flags and families': '🇩🇪🇫🇷👩‍👩‍👧‍👦 🦊🏽',
  German: 'Grüße z. B. aus Köln. ',
  Korean: '안녕하세요. 저는 여우입니다. ',
  'a sentence in doubt for long': `etc. ${'1 '.repeat(700)}and. Then `,
  'one letter with many marks': `e${'\u0301'.repeat(1500)} `,
};

describe.each(['word', 'sentence', 'grapheme'] as const)('every %s', (granularity) => {
  const segmenter = new Intl.Segmenter('en', { granularity });
  test.each(Object.entries(TEXTS))('of %s is where the engine sees it', (_, text) => {
    const long = text.repeat(Math.ceil(6000 / text.length));
    const seen = Array.from(segmentsOf(segmenter, long), ({ segment }) => segment);
    expect(seen).toEqual(Array.from(segmenter.segment(long), ({ segment }) => segment));
  });
});
