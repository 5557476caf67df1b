// What clients find again of a graph that they sent: its order, its numbers, its id.
import { expect, test, vi } from 'vitest';
import { pngText } from '../support/clients/client-helpers.ts';
import { call } from '../support/clients/raw-call.ts';
import { getJson } from '../support/clients/v1-client.ts';
import { endless } from '../support/graphs/workflows.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const server = useHoldover();

async function post(body: string): Promise<{ status: number; text: string; json: any }> {
  const { status, text } = await call(server.url, '/prompt', { method: 'POST', body });
  return { status, text, json: JSON.parse(text) };
}

async function ended(id: string): Promise<{ entry: any; text: string }> {
  const url = `${server.url}/history/${id}`;
  await expect.poll(() => getJson(url), { timeout: 30_000 }).toHaveProperty([id]);
  const text = await (await fetch(url)).text();
  return { entry: JSON.parse(text)[id], text };
}

/** The members of nodes "10","9","3","b","2", in an order that JavaScript does not keep. */
const GRAPH = [
  '"10":{"class_type":"SaveImage","inputs":{"images":["9",0],"filename_prefix":"ordered"}}',
  '"9":{"class_type":"EmptyImage","inputs":{"width":"8","height":8,"batch_size":1,"color":0}}',
  '"3":{"class_type":"PreviewAny","inputs":{"source":["b",0]}}',
  '"b":{"class_type":"PrimitiveString","inputs":{"value":"text"}}',
  '"2":{"class_type":"PreviewAny","inputs":{"source":["b",0]}}',
].join(',');
const WORKFLOW = '{"z":1,"10":{"5":1,"4":18446744073709551615},"9":1}';
const NODE = /"(10|9|3|b|2)": ?\{"class_type"/g;

/** The ids of the nodes of the graph in the order of a text. */
const idsIn = (text: string): string[] => [...text.matchAll(NODE)].map(([, id]) => id ?? '');
const SENT = ['10', '9', '3', 'b', '2'];

test('the order of nodes is kept in the queue, the history and the texts of a PNG', async () => {
  const blocker = await post(JSON.stringify({ prompt: endless(), prompt_id: 'blocker' }));
  expect(blocker.status).toBe(200);
  const extra = `"extra_data":{"extra_pnginfo":{"workflow":${WORKFLOW}}}`;
  const { status } = await post(`{"prompt":{${GRAPH}},"prompt_id":"ordered",${extra}}`);
  expect(status).toBe(200);
  const queue = await (await fetch(`${server.url}/queue`)).text();
  expect(idsIn(queue.slice(queue.indexOf('queue_pending')))).toEqual(SENT);
  await fetch(`${server.url}/interrupt`, { method: 'POST' });
  const { entry, text } = await ended('ordered');
  expect(idsIn(text)).toEqual(SENT);
  expect(text.replaceAll(' ', '')).toContain(WORKFLOW);
  const [image] = entry.outputs['10'].images;
  const png = await fetch(`${server.url}/view?${new URLSearchParams(image).toString()}`);
  const bytes = new Uint8Array(await png.arrayBuffer());
  expect(idsIn(pngText(bytes, 'prompt') ?? '')).toEqual(SENT);
  expect(pngText(bytes, 'workflow')?.replaceAll(' ', '')).toBe(WORKFLOW);
  // Clients take the first node and expect a picture there.
  const outputs = /"outputs": \{"(\w+)": \{"images"/.exec(text)?.[1];
  expect(outputs).toBe('10');
});

test.each([
  ['is refused', '', 400],
  ['runs in part', ',"1":{"class_type":"PreviewAny","inputs":{"source":"x"}}', 200],
])('the order of nodes is kept in the errors of a prompt that %s', async (_, good, expected) => {
  const broken = ['10', '9', 'b', '2'].map(
    (id) => `"${id}":{"class_type":"SaveImage","inputs":{"images":["none",0]}}`,
  );
  const { status, text } = await post(`{"prompt":{${broken.join(',')}${good}}}`);
  expect(status).toBe(expected);
  const named = [...text.matchAll(/"(\w+)": \{"errors"/g)].map(([, id]) => id);
  expect(named).toEqual(['10', '9', 'b', '2']);
});

test.each(['"class_type":"None",', ''])(
  'the first node that cannot run is named: {%s"inputs":{}}',
  async (member) => {
    const broken = ['10', '9'].map((id) => `"${id}":{${member}"inputs":{}}`);
    const { json } = await post(`{"prompt":{${broken.join(',')}}}`);
    expect(json.error.extra_info.node_id).toBe('10');
  },
);

test('NaN and Infinity that nobody computes with are read as null', async () => {
  const graph = [
    '"1":{"class_type":"EmptyImage","inputs":{"width":8,"height":8,"batch_size":1,"color":0},"is_changed":[NaN]}',
    '"9":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"nan"},"is_changed":-Infinity}',
  ].join(',');
  const extra = '"extra_data":{"extra_pnginfo":{"workflow":{"a":[NaN,1]}}}';
  const { status } = await post(
    `{"prompt":{${graph}},"prompt_id":"nan",${extra},"stray":Infinity,"text":"NaN"}`,
  );
  expect(status).toBe(200);
  const { entry } = await ended('nan');
  expect(entry.status.status_str).toBe('success');
  expect(entry.prompt[2]['1'].is_changed).toEqual([null]);
  expect(entry.prompt[3].extra_pnginfo.workflow.a).toEqual([null, 1]);
});

test.each(['NaN', 'Infinity', '-Infinity', 'null'])('%s for a number is a 400', async (number) => {
  const inputs = `{"width":${number},"height":8,"batch_size":1,"color":0}`;
  const { status, json } = await post(
    `{"prompt":{"1":{"class_type":"EmptyImage","inputs":${inputs}},"9":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"x"}}}}`,
  );
  expect(status).toBe(400);
  expect(json.node_errors['1'].errors[0].extra_info.input_name).toBe('width');
});

test.each(['nan', 'NaNs', '--Infinity', 'Inf', '+Infinity'])('%s is no JSON', async (word) => {
  const { status, json } = await post(`{"prompt":{},"stray":${word}}`);
  expect([status, json.error.type]).toEqual([400, 'invalid_json']);
});

test('a prompt_id of null gets each prompt an id of its own', async () => {
  const ids = [];
  for (const _ of [1, 2]) ids.push((await post(`{"prompt":{${GRAPH}},"prompt_id":null}`)).json);
  expect(new Set(ids.map(({ prompt_id: id }) => id)).size).toBe(2);
  expect(ids[0].prompt_id).toMatch(/^[0-9a-f-]{36}$/);
});
