import { expect, test } from 'vitest';
import { decoderFor } from '../../../src/http/json/charset.ts';

test.each([
  undefined,
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset="UTF8"',
  'text/plain; charset=us-ascii',
  'application/json; charset=no-such-charset',
  'application/json; charset',
])('a body of type %s is read as UTF-8', (contentType) =>
  expect(decoderFor(contentType).encoding).toBe('utf-8'),
);

test.each([
  ['application/json', 'utf8'],
  ['text/plain; charset=ISO-8859-1', 'latin1'],
  ['application/json;CHARSET="iso-8859-1"; q=1', 'latin1'],
  ['application/json; charset = windows-1252', 'latin1'],
  ['application/json; charset=utf-16', 'utf16le'],
] as const)(
  'a body of type %s is read in its charset, wherever it is cut',
  (contentType, charset) => {
    const bytes = Buffer.from('{"text":"lät"}', charset);
    const decoder = decoderFor(contentType);
    const texts = [...bytes].map((byte) => decoder.decode(Buffer.of(byte), { stream: true }));
    expect(texts.join('') + decoder.decode()).toBe('{"text":"lät"}');
  },
);
