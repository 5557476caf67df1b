import { expect, test } from 'vitest';
import type Koa from 'koa';
import { jobRoutes } from '../../src/v1/jobs.ts';
import { readIdList, readNamedIds } from '../../src/v1/routing/body.ts';
import { parseJson } from '../../src/protocol/json.ts';
import type { LivePrompt } from '../../src/prompts/live-prompt.ts';

test.each([
  ['an object without a text', '[{"toString":1,"valueOf":2},"a"]', ['a']],
  ['a list', '[["a"],[]]', []],
  ['the same id again', '["a","b","a"]', ['a', 'b']],
  ['a number of twenty digits', '[12345678901234567890]', ['12345678901234567890']],
])('%s in a list of ids', (_, json, ids) => {
  expect(readIdList(parseJson(json), 'delete')).toEqual(ids);
});

test.each([
  ['a text is its characters', '"abca"', ['a', 'b', 'c']],
  ['an object is its keys', '{"a":1,"b":2}', ['a', 'b']],
  ['a list is its members', '["a"]', ['a']],
  ['null is nothing', 'null', []],
])('where v1 iterates over a member, %s', (_, json, ids) => {
  expect(readNamedIds(parseJson(json), 'delete')).toEqual(ids);
});

test('a prompt that one call names by both of its ids is cancelled once', async () => {
  const prompt = { promptId: 'mine', jobId: 'job-1' } as LivePrompt;
  const cancelled: (readonly LivePrompt[])[] = [];
  const routes = jobRoutes({
    livePrompts: { find: () => prompt },
    bodies: { read: async () => ({ ok: true, value: { job_ids: ['mine', 'job-1'] } }) },
    cancel: async (prompts: readonly LivePrompt[]) => void cancelled.push(prompts),
  } as unknown as Parameters<typeof jobRoutes>[0]);
  const route = routes.find(({ name }) => name === 'POST /api/jobs/cancel');
  const ctx = { state: {}, set() {} } as unknown as Koa.Context;
  await route?.handle({ ctx, caller: { user: 'ann' }, params: {}, query: new URLSearchParams() });
  expect(cancelled).toEqual([[prompt]]);
  expect((ctx as { readonly body?: unknown }).body).toBe('{"cancelled": true}');
});
