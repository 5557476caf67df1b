import { expect, test } from 'vitest';
import {
  hasControlCharacter,
  targetHasControlCharacter,
} from '../../src/protocol/control-characters.ts';

test.each(['a\0', '\x01', 'a\tb', 'a\r\nb', '\x1f', '\x7f', '\u0080', '\u009f'])(
  '%j has a control character',
  (text) => expect(hasControlCharacter(text)).toBe(true),
);

test.each(['', 'a b', 'Grüße', '日本', '\u00a0', '%00'])('%j has none', (text) =>
  expect(hasControlCharacter(text)).toBe(false),
);

test.each([
  '/settings/a%00b',
  '/settings/a%2500b',
  '/settings/a%252500b',
  '/settings/%zz%00',
  '/settings/a%C2%85b',
  '/settings/a%25C2%2585b',
  '/view?filename=a%0Ab',
  '/view?subfolder=%00x',
  '/view?%00=x',
  '/ws?clientId=a%257f',
  'http://127.0.0.1/history/a%0d',
  '/v1/models/a%01/b',
  '/proxy/p/a%00',
  '/api/v2/jobs?cursor=%2500',
])('%s has one', (url) => expect(targetHasControlCharacter(url)).toBe(true));

test.each([
  '/settings/a%20b',
  '/settings/100%25',
  '/view?filename=frame_%2505d.png',
  '/view?filename=100%.png&subfolder=%C3%84',
  '/proxy/p/search?text=two%0Alines',
  '/api/v2/jobs?metadata[note]=a%0Ab',
  '/api/v2/jobs?metadata%5Bnote%5D=a%0Ab',
  '/queue',
  '*',
  '',
])('%s has none, or none that is for this check', (url) =>
  expect(targetHasControlCharacter(url)).toBe(false),
);
