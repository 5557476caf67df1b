import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { delay } from '../../src/router/local/local-models.ts';
import { THREAD_MODELS } from '../../src/router/local/thread-models.ts';
import { type OpenRouter, errorOf, model, openRouter, said } from './open.ts';

const INPUT = {
  type: 'object',
  additionalProperties: false,
  required: ['n'],
  properties: { n: { type: 'integer', minimum: 1 } },
};

let router: OpenRouter;
beforeEach(async () => {
  router = await openRouter({
    models: [model({ model: 'strict', input: INPUT }), model({ model: 'open' })],
  });
});
afterEach(() => router.close());

const get = (headers: Record<string, string> = {}, id = 'test/strict') =>
  router.call(`/v1/models/${id}/openapi.json`, { headers });

describe('GET /v1/models/{provider}/{model}/openapi.json', () => {
  test('answers a standalone OpenAPI document with the schema of the request body', async () => {
    const { status, json, headers } = await get();
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(json.openapi).toMatch(/^3\.1/);
    const { post } = json.paths['/v1/models/test/strict'];
    expect(post.requestBody.content['application/json'].schema).toEqual({
      $ref: '#/components/schemas/Input',
    });
    expect(json.components.schemas.Input).toEqual(INPUT);
  });

  test('nothing in it points outside of it', async () => {
    const { text } = await get();
    const references = [...text.matchAll(/"\$ref":"([^"]*)"/g)].map(([, target]) => target);
    expect(references.length).toBeGreaterThan(0);
    expect(references.filter((target) => !target?.startsWith('#/'))).toEqual([]);
  });

  test('is the document calls are checked against', async () => {
    const check = new Ajv2020({ strict: false }).compile(
      (await get()).json.components.schemas.Input,
    );
    for (const body of [{ n: 1 }, { n: 0 }, { n: 1.5 }, {}, { n: 1, x: 1 }]) {
      const { status } = await router.run('test/strict', body);
      expect([body, status]).toEqual([body, check(body) ? 200 : 422]);
    }
  });

  test('carries a strong ETag over its bytes, and is private and must-revalidate', async () => {
    const { text, headers } = await get();
    expect(headers.get('etag')).toBe(`"${createHash('sha256').update(text).digest('hex')}"`);
    expect(headers.get('cache-control')).toMatch(/\bprivate\b/);
    expect(headers.get('cache-control')).toMatch(/\bmust-revalidate\b/);
  });

  test('If-None-Match with its tag is a 304 without a body, with another the document', async () => {
    const tag = (await get()).headers.get('etag') ?? '';
    const answer = await get({ 'If-None-Match': `"other", W/${tag}` });
    expect([answer.status, answer.text]).toEqual([304, '']);
    expect(answer.headers.get('etag')).toBe(tag);
    expect(answer.headers.get('cache-control')).toMatch(/private/);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
    expect(answer.headers.get('content-type')).toBeNull();
    expect((await get({ 'If-None-Match': '"other"' })).status).toBe(200);
  });

  test('an unknown model is a 404 model_not_found, a stale tag or not', async () => {
    expect(errorOf(await get({ 'If-None-Match': '*' }, 'test/none'))).toEqual(
      said(404, 'model_not_found'),
    );
  });

  test('a model without a schema says that it accepts any object', async () => {
    const { json } = await get({}, 'test/open');
    expect(json.components.schemas.Input).toEqual({ type: 'object', additionalProperties: true });
    expect(json['x-comfy-input-schema-authored']).toBe(false);
  });
});

describe('the schemas of the local models', () => {
  const all = [...THREAD_MODELS, delay];

  test.each(all)(
    'that of $model is strict JSON Schema 2020-12, with every field described',
    (def) => {
      expect(() =>
        new Ajv2020({ strict: true, strictRequired: false }).compile(def.input ?? {}),
      ).not.toThrow();
      const { properties } = def.input as unknown as {
        properties: Record<string, { description?: string }>;
      };
      const silent = Object.entries(properties).filter(
        ([name, field]) => !field.description && name !== 'algorithms',
      );
      expect(silent.map(([name]) => name)).toEqual([]);
    },
  );

  test('docs/model-router.md names every model', () => {
    const page = readFileSync(new URL('../../docs/model-router.md', import.meta.url), 'utf8');
    const untold = all.filter(({ model: name }) => !page.includes(`local/${name}`));
    expect(untold.map(({ model: name }) => name)).toEqual([]);
  });
});
