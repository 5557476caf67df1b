import { describe, expect, test } from 'vitest';
import { isCopyCurrent } from '../../src/http/file-headers.ts';

const ETAG = '"abc"';
const MODIFIED_AT_MS = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const DATE = 'Fri, 02 Jan 2026 03:04:05 GMT';
const EARLIER = 'Fri, 02 Jan 2026 03:04:04 GMT';

const isCurrent = (headers: { readonly [name: string]: string }): boolean =>
  isCopyCurrent({ headers }, { etag: ETAG, modifiedAtMs: MODIFIED_AT_MS });

describe('the copy of a client is current', () => {
  test.each([[ETAG], [`W/${ETAG}`], [`"x", ${ETAG}`], [`"x",W/${ETAG}`], ['*'], [' * ']])(
    'with If-None-Match: %s',
    (tags) => expect(isCurrent({ 'if-none-match': tags })).toBe(true),
  );

  test.each([DATE, 'Sat, 03 Jan 2026 03:04:05 GMT'])('unmodified since %s', (date) => {
    expect(isCurrent({ 'if-modified-since': date })).toBe(true);
  });

  test('whatever the date, when a tag fits', () => {
    expect(isCurrent({ 'if-none-match': ETAG, 'if-modified-since': EARLIER })).toBe(true);
  });

  test('when `no-cache` comes with the condition, as from `fetch`', () => {
    const noCache = { 'cache-control': 'no-cache', pragma: 'no-cache' };
    expect(isCurrent({ 'if-none-match': ETAG, ...noCache })).toBe(true);
    expect(isCurrent({ 'if-modified-since': DATE, ...noCache })).toBe(true);
  });

  test('by the tag of a weak validator', () => {
    expect(isCopyCurrent({ headers: { 'if-none-match': ETAG } }, { etag: `W/${ETAG}` })).toBe(true);
  });
});

describe('it is not', () => {
  test.each([['"other"'], ['abc'], ['"x*"'], ['']])('with If-None-Match: %s', (tags) =>
    expect(isCurrent({ 'if-none-match': tags })).toBe(false),
  );

  test.each([EARLIER, 'yesterday'])('modified since %s', (date) => {
    expect(isCurrent({ 'if-modified-since': date })).toBe(false);
  });

  test('whatever the date, when no tag fits', () => {
    expect(isCurrent({ 'if-none-match': '"other"', 'if-modified-since': DATE })).toBe(false);
  });

  test('without a condition, or without a date of the file', () => {
    expect(isCurrent({})).toBe(false);
    expect(isCopyCurrent({ headers: { 'if-modified-since': DATE } }, { etag: ETAG })).toBe(false);
  });
});
