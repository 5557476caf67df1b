import { expect, test } from 'vitest';
import { transcoderFor } from '../../../src/http/json/charset.ts';

test.each([
  undefined,
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset="UTF8"',
  'text/plain; charset=us-ascii',
  'application/json; charset=no-such-charset',
  'application/json; charset',
])('a body of type %s is read as it is', (contentType) =>
  expect(transcoderFor(contentType)).toBeUndefined(),
);

test.each([
  ['text/plain; charset=ISO-8859-1', 'latin1'],
  ['application/json;CHARSET="iso-8859-1"; q=1', 'latin1'],
  ['application/json; charset = windows-1252', 'latin1'],
  ['application/json; charset=utf-16', 'utf16le'],
] as const)(
  'a body of type %s is read in its charset, wherever it is cut',
  (contentType, charset) => {
    const bytes = Buffer.from('{"text":"lät"}', charset);
    const transcode = transcoderFor(contentType);
    const chunks = [...bytes].map((byte) => transcode?.(Buffer.of(byte)) ?? Buffer.alloc(0));
    expect(Buffer.concat(chunks).toString()).toBe('{"text":"lät"}');
  },
);
