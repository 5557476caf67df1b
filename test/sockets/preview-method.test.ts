import { describe, expect, test } from 'vitest';
import type { PictureKind } from '../../src/translate/progress/progress-state.ts';
import type { Dialect } from '../../src/dialects/dialect.ts';
import type { SocketConnection } from '../../src/sockets/connection.ts';
import {
  type PreviewMethod,
  acceptsPicture,
  previewMethodIn,
} from '../../src/sockets/preview-method.ts';

type Form = { dialect?: Dialect; isBrowser?: boolean; negotiated?: boolean; watches?: boolean };

const receiver = ({ negotiated = false, ...form }: Form) =>
  ({
    dialect: 'local' as const,
    isBrowser: false,
    watches: false,
    wantsMetadata: () => negotiated,
    ...form,
  }) as unknown as SocketConnection;
const wants = (kind: PictureKind, form: Form, server: PreviewMethod, prompt?: PreviewMethod) =>
  acceptsPicture(kind, receiver(form), { server, prompt });

const PROGRAM: Form = {};
const BROWSER: Form = { isBrowser: true };
const NEGOTIATED: Form = { negotiated: true };
const HOSTED: Form = { dialect: 'hosted' };
const WATCHES: Form = { watches: true };

describe('previews of samplers', () => {
  test.each<[PreviewMethod, { [who: string]: boolean }]>([
    ['default', { program: false, browser: true, negotiated: true, hosted: true, watches: true }],
    [
      'negotiated',
      { program: false, browser: false, negotiated: true, hosted: true, watches: true },
    ],
    ['auto', { program: true, browser: true, negotiated: true, hosted: true, watches: true }],
    ['latent2rgb', { program: true, browser: true, negotiated: true, hosted: true, watches: true }],
    ['taesd', { program: true, browser: true, negotiated: true, hosted: true, watches: true }],
    ['none', { program: false, browser: false, negotiated: false, hosted: false, watches: false }],
  ])('with --preview-method %s', (server, expected) => {
    const who = {
      program: PROGRAM,
      browser: BROWSER,
      negotiated: NEGOTIATED,
      hosted: HOSTED,
      watches: WATCHES,
    };
    const found = Object.entries(who).map(([name, form]) => [name, wants('sampler', form, server)]);
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  test.each<[PreviewMethod, PreviewMethod, boolean]>([
    ['default', 'auto', true],
    ['default', 'taesd', true],
    ['negotiated', 'latent2rgb', true],
    ['auto', 'none', false],
    ['auto', 'default', true],
    ['default', 'default', false],
    ['none', 'auto', false],
  ])('with --preview-method %s, of a prompt that asks for %s: %s', (server, prompt, expected) => {
    expect(wants('sampler', PROGRAM, server, prompt)).toBe(expected);
  });

  test('go to no socket of a prompt that asks for none', () => {
    const everyone = [PROGRAM, BROWSER, NEGOTIATED, HOSTED, WATCHES];
    expect(everyone.filter((form) => wants('sampler', form, 'auto', 'none'))).toEqual([]);
  });
});

test('previews that a service does not mark go to all by default, and follow other settings', () => {
  expect(wants('unmarked', PROGRAM, 'default')).toBe(true);
  expect(wants('unmarked', PROGRAM, 'negotiated')).toBe(false);
  expect(wants('unmarked', PROGRAM, 'auto', 'none')).toBe(false);
});

test.each(['own', 'result'] as const)('pictures of kind %s are no matter of settings', (kind) => {
  expect(wants(kind, PROGRAM, 'none', 'none')).toBe(true);
});

test.each([
  ['none', 'none'],
  ['auto', 'auto'],
  ['latent2rgb', 'latent2rgb'],
  ['taesd', 'taesd'],
  ['default', 'default'],
  ['negotiated', undefined],
  ['NONE', undefined],
  [1, undefined],
  [undefined, undefined],
])('a prompt that says %j asks for %s', (value, method) => {
  expect(previewMethodIn(value)).toBe(method);
});
