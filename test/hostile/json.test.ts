// perf-reliability.md 3.5 D: bodies that are not what they should be.
import { afterEach, describe, expect, test } from 'vitest';
import { isV2Path } from '../../src/protocol/v2-paths.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type RawAnswer, dial, requestText, say } from '../support/clients/raw-socket.ts';
import { CANARY, expectNoLeak, expectHealthy } from '../support/processes/expect-healthy.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';

const LIMIT = 1024 * 1024;
const TOO_LARGE = `Maximum request body size ${LIMIT} exceeded.`;

const server = useHoldover({ args: ['--max-upload-size', '1'] });
afterEach(() => expectHealthy(server));

async function post(
  path: string,
  body: string,
  headers: readonly string[] = [],
): Promise<RawAnswer & { json: any }> {
  const text = requestText(path, {
    method: 'POST',
    body,
    headers: [`X-API-Key: ${CANARY}`, ...headers],
  });
  const answer = await say(server.port, text);
  expectNoLeak(answer);
  const isJson = answer.headers['content-type']?.startsWith('application/json');
  return { ...answer, json: isJson ? JSON.parse(answer.body) : undefined };
}

/** A refused prompt is told in v1's shape, whatever was wrong. */
async function refusal(body: string): Promise<string> {
  const { status, json } = await post('/prompt', body);
  expect({ status, body: json }).toEqual({
    status: 400,
    body: expect.objectContaining({
      error: {
        type: expect.any(String),
        message: expect.stringMatching(/\S/),
        details: expect.any(String),
        extra_info: expect.any(Object),
      },
      node_errors: expect.any(Object),
    }),
  });
  return json.error.type;
}

const graph = (node: string): string => `{"prompt":{"1":${node}}}`;
const images = (link: string): string => `{"images":${link},"filename_prefix":"x"}`;
const withSave = (inputs: string): string =>
  `{"prompt":{"1":{"class_type":"EmptyImage","inputs":${inputs}},"9":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"x"}}}}`;

describe('POST /prompt answers 400 with error and node_errors to', () => {
  test.each([
    ['nothing', '', 'invalid_json'],
    ['words', 'hello', 'invalid_json'],
    ['half an object', '{"prompt":{"1":', 'invalid_json'],
    ['a trailing comma', '{"prompt":{},}', 'invalid_json'],
    ['two values', '{} {}', 'invalid_json'],
    ['a bare NaN', 'NaN', 'no_prompt'],
    ['single quotes', "{'prompt':{}}", 'invalid_json'],
    ['a control character in a string', '{"prompt":"\u0001"}', 'invalid_json'],
    ['UTF-16', Buffer.from('{"prompt":{}}', 'utf16le').toString('latin1'), 'invalid_json'],
    ['a form', 'prompt=%7B%7D', 'invalid_json'],
    ['null', 'null', 'no_prompt'],
    ['a list', '[]', 'no_prompt'],
    ['a string', '"x"', 'no_prompt'],
    ['a number', '123', 'no_prompt'],
    ['true', 'true', 'no_prompt'],
    ['an empty object', '{}', 'no_prompt'],
    ['an empty graph', '{"prompt":{}}', 'prompt_no_outputs'],
    ['an empty list as graph', '{"prompt":[]}', 'prompt_no_outputs'],
    ['an empty string as graph', '{"prompt":""}', 'prompt_no_outputs'],
    ['null as graph', '{"prompt":null}', 'invalid_prompt'],
    ['a number as graph', '{"prompt":1}', 'invalid_prompt'],
    ['a large number as graph', '{"prompt":18446744073709551616}', 'invalid_prompt'],
    ['a list of nodes as graph', '{"prompt":[{"class_type":"SaveImage"}]}', 'invalid_prompt'],
    [
      'a graph as the front end draws it',
      '{"prompt":{"nodes":[{"id":1}],"links":[],"version":0.4}}',
      'invalid_prompt',
    ],
    ['a number that is none', '{"prompt":{},"number":"x"}', 'invalid_prompt'],
    ['a number that is null', '{"prompt":{},"number":null}', 'invalid_prompt'],
    ['a number that is a list', '{"prompt":{},"number":[1]}', 'invalid_prompt'],
    ['a number that is infinite', '{"prompt":{},"number":1e999}', 'invalid_prompt'],
    ['a number called Infinity', '{"prompt":{},"number":"Infinity"}', 'invalid_prompt'],
    ['a prompt_id that is an object', '{"prompt":{},"prompt_id":{}}', 'invalid_prompt_id'],
    ['a prompt_id with a path', '{"prompt":{},"prompt_id":"../x"}', 'invalid_prompt_id'],
    [
      'a prompt_id of 10 KB',
      `{"prompt":{},"prompt_id":"${'x'.repeat(10_000)}"}`,
      'invalid_prompt_id',
    ],
    ['a prompt_id with line ends', '{"prompt":{},"prompt_id":"a\\r\\nb"}', 'invalid_prompt_id'],
    [
      'a prompt_id with half a character',
      '{"prompt":{},"prompt_id":"\\ud800"}',
      'invalid_prompt_id',
    ],
    ['a client_id that is an object', '{"prompt":{},"client_id":{}}', 'invalid_client_id'],
    [
      'a client_id of 500 KB',
      `{"prompt":{},"client_id":"${'x'.repeat(500_000)}"}`,
      'invalid_client_id',
    ],
    ['a client_id with line ends', '{"prompt":{},"client_id":"a\\r\\nb"}', 'invalid_client_id'],
    [
      'a client_id with half a character',
      '{"prompt":{},"client_id":"\\udc00x"}',
      'invalid_client_id',
    ],
    ['extra_data that is a list', '{"prompt":{},"extra_data":[]}', 'invalid_prompt'],
    ['extra_data that is a string', '{"prompt":{},"extra_data":"x"}', 'invalid_prompt'],
    [
      'a client_id hidden in extra_data',
      '{"prompt":{},"extra_data":{"client_id":["x"]}}',
      'invalid_client_id',
    ],
    [
      'targets that are a string',
      '{"prompt":{},"partial_execution_targets":"9"}',
      'invalid_prompt',
    ],
  ])('%s', async (_, body, type) => {
    expect(await refusal(body)).toBe(type);
  });

  test.each([
    ['a node that is null', 'null'],
    ['a node that is a list', '[]'],
    ['a node that is a string', '"SaveImage"'],
    ['a node without class_type', '{"inputs":{}}'],
    ['a class_type that is null', '{"class_type":null,"inputs":{}}'],
    ['a class_type that is an object', '{"class_type":{},"inputs":{}}'],
    ['a class called __proto__', '{"class_type":"__proto__","inputs":{}}'],
    ['a class called constructor', '{"class_type":"constructor","inputs":{}}'],
    ['an unknown class', '{"class_type":"Nope","inputs":{}}'],
  ])('%s', async (_, node) => {
    expect(await refusal(graph(node))).toBe('missing_node_type');
  });

  test.each([
    ['no inputs', ''],
    ['inputs that are null', 'null'],
    ['inputs that are a list', '[]'],
    ['inputs that are a string', '"x"'],
    ['a link of one part', images('["1"]')],
    ['a link of objects', images('[{},[]]')],
    ['a link to an unknown node', images('["77",0]')],
    ['a link to __proto__', images('["__proto__",0]')],
    ['a link to toString', images('["toString",0]')],
    ['a link to itself', images('["1",0]')],
    ['a slot of 1e999', images('["1",1e999]')],
    ['a slot of 2^64', images('["1",18446744073709551616]')],
    ['a slot that is half', images('["1",0.5]')],
  ])('an output node with %s', async (_, inputs) => {
    await refusal(graph(`{"class_type":"SaveImage"${inputs && `,"inputs":${inputs}`}}`));
  });

  test.each([
    '1e999',
    '-1',
    '0',
    '18446744073709551616',
    '"x"',
    '{}',
    'null',
    'true',
    '[]',
    '1e-400',
    '9007199254740993',
    '1e15',
  ])('a picture of width %s, or runs it as a width it can be', async (width) => {
    const body = withSave(`{"width":${width},"height":8,"batch_size":1,"color":0}`);
    const { status, json } = await post('/prompt', body);
    expect([200, 400]).toContain(status);
    expect(json.node_errors).toBeTypeOf('object');
  });

  test('a ring of two', async () => {
    const ring = ['1', '2'].map(
      (id, i) => `"${id}":{"class_type":"ImageInvert","inputs":{"image":["${2 - i}",0]}}`,
    );
    const body = `{"prompt":{${ring.join(',')},"9":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"x"}}}}`;
    expect(await refusal(body)).toBe('prompt_outputs_failed_validation');
  });

  test('a chain of 3000 nodes without an end', async () => {
    const chain = Array.from(
      { length: 3000 },
      (_, i) => `"${i}":{"class_type":"ImageInvert","inputs":{"image":["${i + 1}",0]}}`,
    );
    const body = `{"prompt":{${chain.join(',')},"s":{"class_type":"SaveImage","inputs":{"images":["0",0],"filename_prefix":"x"}}}}`;
    await refusal(body);
  });

  test('a body of 10 000 keys that are no nodes', async () => {
    const keys = Array.from({ length: 10_000 }, (_, i) => `"k${i}":1`).join(',');
    await refusal(`{"prompt":{${keys}}}`);
  });

  test('a single string of 900 KB', async () => {
    await refusal(`["${'x'.repeat(900_000)}"]`);
  });

  test('the same number under the same id', async () => {
    const save = flat({ prefix: 'duplicate' });
    const first = await postPrompt(server.url, {
      prompt: endless(),
      prompt_id: 'same-id',
      number: 3,
    });
    expect(first.status).toBe(200);
    const duplicate = await postPrompt(server.url, {
      prompt: save,
      prompt_id: 'same-id',
      number: 3,
    });
    expect(duplicate).toMatchObject({
      status: 400,
      body: { error: { type: 'duplicate_prompt_id' } },
    });
    await fetch(`${server.url}/interrupt`, { method: 'POST' });
    await ended('same-id');
  });
});

describe('POST /prompt takes', () => {
  test.each(['number', 'front', 'x'])('a million digits as %s in linear time', async (name) => {
    const digits = '9'.repeat(900_000);
    const { status } = await post('/prompt', `{"prompt":{},"${name}":${digits}}`);
    expect(status).toBe(400);
  });

  test('a byte order mark, and the last of two equal keys', async () => {
    const body = `\ufeff{"prompt":{"1":{}},"prompt":${JSON.stringify(flat({ prefix: 'bom' }))}}`;
    expect(await post('/prompt', body)).toMatchObject({ status: 200 });
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'prototype', ''])(
    'a node called %j, which stays a node',
    async (id) => {
      const { '1': empty, '9': save } = flat({ prefix: 'odd' });
      const linked = { ...(save as object), inputs: { images: [id, 0], filename_prefix: 'odd' } };
      const name = JSON.stringify(id);
      const body = `{"prompt":{${name}:${JSON.stringify(empty)},"9":${JSON.stringify(linked)}},"prompt_id":"odd ${id}"}`;
      expect(await postPrompt(server.url, body)).toMatchObject({ status: 200 });
      const entry = await ended(`odd ${id}`);
      expect(entry.status.status_str).toBe('success');
      expect(Object.keys(entry.prompt[2])).toContain(id);
    },
  );

  test.each(['__proto__', 'constructor', 'toString'])(
    'an input called %s, which is kept and pollutes nothing',
    async (name) => {
      const id = `input ${name}`;
      const body = withSave(
        `{"width":8,"height":8,"batch_size":1,"color":0,"${name}":{"polluted":true}}`,
      );
      const sent = body.replace(
        /}$/,
        `,"prompt_id":"${id}","extra_data":{"${name}":{"polluted":1}}}`,
      );
      expect(await postPrompt(server.url, sent)).toMatchObject({ status: 200 });
      await ended(id);
      const text = await (await fetch(`${server.url}/history/${encodeURIComponent(id)}`)).text();
      expect(text).toContain(`"${name}": {"polluted": true}`);
      expect(text).toContain(`"${name}": {"polluted": 1}`);
      expect(await getJson(`${server.url}/queue`)).not.toHaveProperty('polluted');
    },
  );

  test('extra_data it does not know, and gives it back', async () => {
    const prompt = JSON.stringify(flat({ prefix: 'extra' }));
    const body = `{"prompt":${prompt},"prompt_id":"extra","extra_data":{"what":[1e400,"\\u0000"]}}`;
    expect(await postPrompt(server.url, body)).toMatchObject({ status: 200 });
    const entry = await ended('extra');
    expect(entry.prompt[3]).toMatchObject({ what: [Infinity, '\0'] });
  });

  test.each([
    ['an object', '{"core/ASSET":{}}'],
    ['a wrapped wrapping', '{"__value__":{"__value__":[]}}'],
    ['a string', '"x"'],
    ['a number', '1e400'],
    ['null', 'null'],
  ])('%s where a picture belongs, as v1 does, and fails when it runs', async (name, literal) => {
    const inputs = `{"images":${literal},"filename_prefix":"x"}`;
    const node = `{"class_type":"SaveImage","inputs":${inputs}}`;
    const id = `literal ${name}`;
    const sent = await postPrompt(server.url, `{"prompt":{"9":${node}},"prompt_id":"${id}"}`);
    expect(sent).toMatchObject({ status: 200 });
    const { status } = await ended(id);
    expect(status).toMatchObject({ status_str: 'error', completed: false });
    expect(JSON.stringify(status)).not.toMatch(/(dist|node_modules)\//);
  });

  test.each(['"yes"', '[]', '{}', 'null', '0.0', '-0', '""'])(
    'front: %s, as truth or not',
    async (front) => {
      const body = `{"prompt":${JSON.stringify(flat({ prefix: 'front' }))},"front":${front}}`;
      const { status, json } = await post('/prompt', body);
      expect(status).toBe(200);
      expect(json.number < 0).toBe(front === '"yes"');
    },
  );

  test.each([
    ['-1e308', -1e308],
    ['" -0.5 "', -0.5],
    ['1e-400', 0],
    ['true', 1],
  ])('number: %s', async (number, echoed) => {
    const body = `{"prompt":${JSON.stringify(flat({ prefix: 'n' }))},"number":${number}}`;
    expect((await post('/prompt', body)).json).toMatchObject({ number: echoed });
  });
});

describe.each([
  '/prompt',
  '/queue',
  '/history',
  '/free',
  '/api/jobs/cancel',
  '/settings',
  '/api/v2/jobs',
])('POST %s', (path) => {
  test.each([
    ['nothing', ''],
    ['null', 'null'],
    ['a list', '[]'],
    ['a string', '"x"'],
    ['half an object', '{"a":'],
    ['bytes that are no UTF-8', '\u00ff'],
  ])('answers %s with what its API has for it, in JSON', async (_, body) => {
    const bytes = Buffer.from(body, 'latin1');
    const head = requestText(path, {
      method: 'POST',
      headers: [`Content-Length: ${bytes.length}`],
    });
    const answer = await say(server.port, Buffer.concat([Buffer.from(head), bytes]));
    expectNoLeak(answer);
    expect(answer.status).toBe(isV2Path(path) ? 422 : 400);
    expect(JSON.parse(answer.body)).toHaveProperty('error');
  });

  test.each([
    ['lists', '['.repeat(100_000)],
    ['objects', `${'{"a":'.repeat(201)}1${'}'.repeat(201)}`],
  ])('answers %s nested too deep with 413, said as for every other limit', async (_, body) => {
    const answer = await post(path, body);
    expect(answer.status).toBe(413);
    expect(answer.body).toContain('Maximum JSON depth 200 exceeded.');
  });

  test('answers a body announced over the limit with 413 before reading it', async () => {
    const wire = await dial(server.port);
    wire.send(requestText(path, { method: 'POST', headers: [`Content-Length: ${LIMIT + 1}`] }));
    expect((await wire.until(TOO_LARGE)).status).toBe(413);
    wire.reset();
  });

  test('answers a body that turns out to be over it with 413 to a client that listens only at the end', async () => {
    const wire = await dial(server.port);
    wire.socket.pause();
    wire.send(requestText(path, { method: 'POST', headers: ['Transfer-Encoding: chunked'] }));
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    for (let i = 0; i < 40; i++) {
      if (wire.socket.destroyed) break;
      await new Promise((resolve) => wire.socket.write(chunk, resolve));
    }
    wire.send('0\r\n\r\n');
    wire.socket.resume();
    const answer = await wire.answer();
    expect(answer.status).toBe(413);
    expect(answer.body).toContain(TOO_LARGE);
  });
});

test.each([
  // As the original iterates over them.
  ['/queue', '{"delete":{"a":1}}', 200],
  ['/queue', '{"delete":"abc"}', 200],
  ['/queue', `{"delete":"${'x'.repeat(10_001)}"}`, 400],
  ['/queue', '{"delete":5}', 400],
  ['/queue', `{"delete":[${'"x",'.repeat(10_000)}"x"]}`, 400],
  ['/queue', '{"delete":[{},null,1e999,["a"]]}', 200],
  ['/queue', '{"delete":[{"toString":1}]}', 200],
  ['/history', '{"delete":[{"toString":1,"valueOf":1},[{"toString":1}]]}', 200],
  ['/queue', '{"clear":"no"}', 200],
  ['/history', '{"delete":{"a":1}}', 200],
  ['/history', '{"delete":"abc"}', 200],
  ['/history', '{"delete":true}', 400],
  ['/history', `{"delete":[${'"x",'.repeat(10_000)}"x"]}`, 400],
  ['/history', '{"delete":["unknown"],"clear":[]}', 200],
  ['/interrupt', '{"prompt_id":{}}', 200],
  ['/interrupt', 'garbage', 200],
  ['/interrupt', '[]', 400],
  ['/settings/__proto__', '{"a":1}', 200],
  ['/settings', `{${Array.from({ length: 10_001 }, (_, i) => `"\\n${i}":1`).join()}}`, 507],
])('POST %s %.40s is answered %i', async (path, body, status) => {
  const answer = await post(path, body);
  expect(answer.status).toBe(status);
});

test.each([
  ['/history?max_items=abc', 400],
  ['/history?max_items=1e9', 400],
  ['/history?max_items=-1', 200],
  ['/history?max_items=', 400],
  ['/history?offset=-5', 200],
  ['/history?max_items=999999999999999&offset=999999999999999', 200],
  ['/history?max_items=99999999999999999999', 200],
  // As Python reads integers.
  ['/history?max_items=1_0', 200],
  ['/history?max_items=%2B2', 200],
  ['/history?max_items=%202%20', 200],
  ['/history?max_items=1__0', 400],
  ['/history?max_items=1_', 400],
  ['/history?max_items=2.0', 400],
  ['/api/jobs?limit=abc', 400],
  ['/api/jobs?limit=0', 400],
  ['/api/jobs?status=__proto__', 400],
  ['/api/jobs?sort_by=__proto__', 400],
  ['/api/jobs?output_type=__proto__', 400],
  ['/api/internal/logs', 404],
  ['/api/v2/jobs?limit=-1', 400],
  ['/api/v2/jobs?cursor=%00', 400],
])('GET %s is answered %i', async (path, status) => {
  const answer = await say(server.port, requestText(path));
  expectNoLeak(answer);
  expect(answer.status).toBe(status);
});

test.each([
  CANARY,
  `"${CANARY}`,
  `{"a":"${CANARY}"x}`,
  `{"a":"${CANARY}",,}`,
  `{"a":12345678901234567890,"b":"${CANARY}"x}`,
  `{"a":12345678901234567890,${CANARY}:1}`,
  'undefined',
])('what is wrong with a body is told without repeating it (%#)', async (body) => {
  for (const path of ['/prompt', '/settings', '/api/v2/jobs']) {
    const { status, raw } = await post(path, body);
    expect(status).toBe(isV2Path(path) ? 422 : 400);
    expect(raw).not.toContain(CANARY.slice(0, 6));
    expect(raw).toMatch(/The body is not JSON: [A-Z]\w+/);
  }
});

async function ended(promptId: string): Promise<any> {
  const url = `${server.url}/history/${encodeURIComponent(promptId)}`;
  await expect.poll(() => getJson(url), { timeout: 15_000 }).toHaveProperty([promptId]);
  return (await getJson(url))[promptId];
}
