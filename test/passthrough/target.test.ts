import { describe, expect, test } from 'vitest';
import {
  withJobId,
  hasDotSegments,
  jobOfTarget,
  v2TargetOf,
} from '../../src/passthrough/target.ts';
import { readTarget } from '../../src/protocol/request-target.ts';
import { withoutLogin } from '../../src/protocol/url-credentials.ts';

describe('/api/v2/* goes upstream, but what v1 has there', () => {
  test.each([
    ['', '/api/v2', '/api/v2'],
    ['', '/api/v2/userdatabase', '/api/v2/userdatabase'],
    ['/d/1', '/api/v2/jobs', '/d/1/api/v2/jobs'],
    ['/d/1', '/d/1/api/v2/jobs', '/d/1/api/v2/jobs'],
    ['/d/1', '/d/1/api/v2/userdata', '/d/1/api/v2/userdata'],
  ])('below "%s", %s is asked for as %s', (mount, path, target) => {
    expect(v2TargetOf(mount)(path)).toBe(target);
  });

  test.each([
    ['', '/api/v2/userdata'],
    ['', '/api/v20'],
    ['', '//api/v2/jobs'],
    ['/d/1', '/api/v2/userdata'],
    ['/d/1', '/d/2/api/v2/jobs'],
    ['/d/1', '/d/1/api/v20'],
  ])('below "%s", %s stays here', (mount, path) => {
    expect(v2TargetOf(mount)(path)).toBeUndefined();
  });
});

test.each([
  ['/api/v2/jobs/mine', 'mine', '/api/v2/jobs/j%201'],
  ['/api/v2/jobs/mine/', 'mine', '/api/v2/jobs/j%201/'],
  ['/api/v2/jobs/my%20own/events?after=/x', 'my own', '/api/v2/jobs/j%201/events?after=/x'],
  ['/d/1/api/v2/jobs/mine/cancel', 'mine', '/d/1/api/v2/jobs/j%201/cancel'],
  ['/api/v2/jobs/mine?at=/api/v2/jobs/yours', 'mine', '/api/v2/jobs/j%201?at=/api/v2/jobs/yours'],
])('%s is about the job %s, and can be about another', (target, id, other) => {
  expect(jobOfTarget(target)?.jobId).toBe(id);
  expect(withJobId(target, 'j 1')).toBe(other);
});

test.each([
  '/api/v2/jobs',
  '/api/v2/jobs/',
  '/api/v2/jobs?limit=1',
  '/api/v2/jobs/%zz',
  '/api/v2/assets/mine',
  '/api/v2/assets?of=/api/v2/jobs/mine',
])('%s is about no job', (target) => {
  expect(jobOfTarget(target)).toBeUndefined();
});

test.each([
  ['/api/v2/jobs?a=1', { path: '/api/v2/jobs', query: '?a=1' }],
  ['/api/v2/jobs?', { path: '/api/v2/jobs', query: '?' }],
  ['http://h.example:1/api/v2/jobs?b', { path: '/api/v2/jobs', query: '?b' }],
  ['/api/v2/jobs?a=http://x/?b', { path: '/api/v2/jobs', query: '?a=http://x/?b' }],
])('%s is split without being decoded', (url, expected) => {
  expect(readTarget(url)).toEqual(expected);
});

test.each([
  '/api/v2/..',
  '/api/v2/../admin',
  '/api/v2/./jobs',
  '/api/v2/%2e%2E/admin',
  '/api/v2/.%2e/admin',
  '/api/v2/..%2fadmin',
  '/api/v2/x%2f..%2fadmin',
  '/api/v2/..\\admin',
  '/api/v2/..;x=1/admin',
  '/api/v2/..#/admin',
])('%s climbs', (path) => {
  expect(hasDotSegments(path)).toBe(true);
});

test.each(['/api/v2/...', '/api/v2/a..b', '/api/v2/.well', '/api/v2/a.', '/api/v2/%2ea'])(
  '%s does not climb',
  (path) => {
    expect(hasDotSegments(path)).toBe(false);
  },
);

test.each([
  ['', ''],
  ['?', '?'],
  ['?a=1&b', '?a=1&b'],
  ['?a=%20+%zz&&c=', '?a=%20+%zz&&c='],
  ['?token=s', ''],
  ['?a=1&token=s&b=2', '?a=1&b=2'],
  ['?token=s&token=t', ''],
  ['?%74oken=s&a', '?a'],
  ['?tokens=1&Token=2', '?tokens=1&Token=2'],
])('the key is taken out of the query %s, and nothing else', (query, expected) => {
  expect(withoutLogin(query)).toBe(expected);
});

test.each([
  ['?token=sig&part=1', '?token=sig&part=1'],
  ['?a=1&token=key&token=sig', '?a=1&token=sig'],
  ['?token=k%65y', ''],
  ['?%74oken=+key%20&token=', '?token='],
])('where a token may be something else, only the key is taken out of %s', (query, expected) => {
  expect(withoutLogin(query, ['key', undefined])).toBe(expected);
});
