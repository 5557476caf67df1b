import { describe, expect, test } from 'vitest';
import { type Dialect, createDialects } from '../../src/dialects/dialect.ts';

const KEY = { 'x-api-key': 'k' };
const EMPTY_KEY = { 'x-api-key': '' };
const BEARER = { authorization: 'Bearer k' };
/** A token of ComfyUI-Login: a bcrypt hash. */
const LOGIN = '$2b$12$abcdefghijklmnopqrstuu/x.y';
const BASIC = { authorization: 'Basic Oms=' };

describe('the dialect is reported by the form', () => {
  const { ofCall, ofSocket } = createDialects('auto');

  test.each<[string, { readonly [name: string]: string }, Dialect]>([
    ['/api/prompt', KEY, 'hosted'],
    ['/api/prompt', EMPTY_KEY, 'hosted'],
    ['/api/view?filename=a', KEY, 'hosted'],
    ['http://host:1/api/queue', KEY, 'hosted'],
    ['/api/prompt', {}, 'local'],
    ['/api/prompt', BEARER, 'local'],
    ['/api/prompt?token=k', BASIC, 'local'],
    ['/prompt', KEY, 'local'],
    ['/apis/prompt', KEY, 'local'],
    ['/prompt?path=/api/', KEY, 'local'],
    [`/api/prompt?token=${LOGIN}`, KEY, 'local'],
    [`/api/prompt?token=${encodeURIComponent(LOGIN)}`, {}, 'local'],
  ])('of a call: %s %j is %s', (url, headers, expected) => {
    expect(ofCall({ url, headers })).toBe(expected);
  });

  test.each<[string, { readonly [name: string]: string }, Dialect]>([
    ['/ws?token=k', {}, 'hosted'],
    ['/ws?clientId=c&token=', {}, 'local'],
    ['/ws?token', {}, 'local'],
    ['/ws?%74oken=k', {}, 'hosted'],
    [`/ws?clientId=c&token=${LOGIN}`, {}, 'local'],
    [`/ws?token=${encodeURIComponent(LOGIN)}&clientId=c`, {}, 'local'],
    ['/ws?token=$2a$10$x', {}, 'local'],
    ['/ws?token=$2y$10$x', {}, 'local'],
    ['/ws?token=$2x$10$x', {}, 'hosted'],
    ['/ws?token=a$2b$10$x', {}, 'hosted'],
    ['/ws?token=$2b', {}, 'hosted'],
    ['/api/ws?clientId=c', KEY, 'local'],
    ['/ws?clientId=token', BEARER, 'local'],
    ['/ws', {}, 'local'],
  ])('of a socket: %s %j is %s', (url, headers, expected) => {
    expect(ofSocket({ url, headers })).toBe(expected);
  });
});

test.each<Dialect>(['local', 'hosted'])('--dialect %s forces it for all', (forced) => {
  const { ofCall, ofSocket } = createDialects(forced);
  for (const url of ['/api/prompt?token=k', '/prompt']) {
    for (const headers of [KEY, {}]) {
      expect([ofCall({ url, headers }), ofSocket({ url, headers })]).toEqual([forced, forced]);
    }
  }
});
