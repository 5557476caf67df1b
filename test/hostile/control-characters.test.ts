// A control character in a name, an id, a key or a path is a 400 on every route there is, in the form
// of the API it is for, and nothing is changed by it. The routes come from the tables that serve them.
import { Agent } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { V1RouteName } from '../../src/migration/v1-routes.ts';
import { type Form, ROUTES } from '../support/app/all-routes.ts';
import { errorSummary } from '../support/golden/error-summary.ts';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { type Called, call } from '../support/clients/raw-call.ts';
import { type RawAnswer, say, upgradeText } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Part, multipart } from '../support/app/v1-routes.ts';

// A test calls every route of an API, some of them dozens of times.
vi.setConfig({ testTimeout: 60_000 });

const CONTROLS = ['\0', '\n', '\x7f', '\u0085'];
const HEADERS = { 'X-API-Key': 'someone' };

/** Each is there before, and a shortened name would hit it. */
const NAME = 'a';

const once = encodeURIComponent;
const twice = (text: string) => once(once(text));
const ENCODINGS = CONTROLS.flatMap((control) => [
  `${NAME}${once(control)}b`,
  `${NAME}${twice(control)}b`,
]);

/** Every query parameter that a route reads, and one name that no route reads. */
const PARAMETERS =
  'filename subfolder type clientId token dir path max_items offset status sort_by preview channel overwrite cursor limit user signature ignored_name'.split(
    ' ',
  );

const server = useHoldover();
let before: string;

beforeAll(async () => {
  await uploadInput(server.url, { name: `${NAME}.png`, bytes: await pngOf() }, HEADERS);
  await uploadInput(
    server.url,
    { name: NAME, bytes: await pngOf(), fields: { subfolder: NAME } },
    HEADERS,
  );
  await post('/settings/a', '1');
  await post('/userdata/a', 'mine');
  before = await state();
});
afterEach(async () => {
  expect(await state()).toBe(before);
  await expectHealthy(server);
});

async function post(path: string, body: string): Promise<void> {
  const answer = await fetch(server.url + path, { method: 'POST', body, headers: HEADERS });
  expect(answer.status).toBe(200);
}

/** All that this user has. */
async function state(): Promise<string> {
  const paths = ['/settings', '/v2/userdata?path=', '/internal/files/input', '/history', '/queue'];
  const texts = paths.map(async (path) => {
    const answer = await fetch(server.url + path, { headers: HEADERS });
    return `${path} ${answer.status} ${await answer.text()}`;
  });
  return (await Promise.all(texts)).join('\n');
}

/** A 400 as the API writes it; in a path of v2 it is a name that nothing has. */
function expectRefused(
  form: Form,
  answer: RawAnswer | Called,
  { what, refusedWith = 400 }: { readonly what: string; readonly refusedWith?: number },
): void {
  const { status, headers } = answer;
  const body = 'text' in answer ? answer.text : answer.body;
  expect({ what, status, body }).toMatchObject({ status: refusedWith });
  if (form === 'v1')
    return expect([what, errorSummary({ status, headers, text: body })]).toEqual([
      what,
      expect.stringMatching(/^400 (refusal \w+|hosted refusal \w+|code \w+|text: .+)$/),
    ]);
  const json = JSON.parse(body);
  if (form === 'v2')
    expect(json).toEqual({ error: expect.objectContaining({ code: expect.any(String) }) });
  if (form === 'router') expect(json).toMatchObject({ error_type: 'invalid_input' });
  if (form === 'router') expect(headers['x-comfy-error-type']).toBe('invalid_input');
}

/** Thousands of calls: a connection for each takes more than the call. */
const agent = new Agent({ keepAlive: true });
afterAll(() => agent.destroy());

function ask(method: string, target: string, sent = '{}'): Promise<Called> {
  const body = method === 'GET' || method === 'HEAD' ? undefined : sent;
  return call(server.url, target, { method, headers: HEADERS, agent, ...(body && { body }) });
}

/** The route with its parameters filled in, one of them oddly. */
function* oddPaths(path: string, odd: string): Generator<string> {
  const names = path.match(/:\w+/g) ?? [];
  for (const name of names) yield path.replace(name, odd).replaceAll(/:\w+/g, NAME);
  if (names.length === 0) yield `${path}/${odd}`;
}

/** Every third of them, so that three routes that follow one another have all. */
function encodingsFor(routeIndex: number): readonly string[] {
  return ENCODINGS.filter((_, at) => at % 3 === routeIndex % 3);
}

/** Of each seventh parameter, for this and the next six routes one after the other. */
function* oddQueries(routeIndex: number): Generator<string> {
  for (const [at, parameter] of PARAMETERS.entries()) {
    if (at % 7 !== routeIndex % 7) continue;
    const odd = ENCODINGS[at % ENCODINGS.length] ?? '';
    const isName = parameter === 'filename' || parameter === 'subfolder';
    // Decoded once this is a name like others, and only an unknown name is refused for it.
    const encoding = isName ? `a${once(CONTROLS[at % CONTROLS.length] ?? '')}b` : odd;
    yield `${parameter}=${encoding}`;
    yield `${odd}=1`;
  }
}

describe.each(['v1', 'v2', 'router'] as const)('a route of %s', (form) => {
  const routes = ROUTES.flatMap(([of, route]) => (of === form ? [route] : []));

  test('refuses them in its path', async () => {
    for (const [at, { method, path }] of routes.entries()) {
      for (const target of encodingsFor(at).flatMap((odd) => [...oddPaths(path, odd)])) {
        const answer = await ask(method, target);
        const refusedWith = form === 'v2' ? 404 : 400;
        if (method === 'HEAD') expect(answer.status).toBe(refusedWith);
        else expectRefused(form, answer, { what: `${method} ${target}`, refusedWith });
      }
    }
  });

  test('refuses them in its query', async () => {
    for (const [at, { method, path }] of routes.entries()) {
      for (const query of oddQueries(at)) {
        const target = `${path.replaceAll(/:\w+/g, NAME)}?${query}`;
        const answer = await ask(method, target);
        if (method === 'HEAD') expect(answer.status).toBe(400);
        else expectRefused(form, answer, { what: `${method} ${target}` });
      }
    }
  });
});

test('a name that is encoded twice is a 400 where files are looked for by name', async () => {
  for (const odd of ENCODINGS) {
    for (const path of ['/view', '/api/view']) {
      const answer = await ask('GET', `${path}?filename=${odd}.png`);
      expect([odd, answer.status]).toEqual([odd, 400]);
    }
  }
});

test('a file whose own name looks encoded is kept and found', async () => {
  const bytes = await pngOf({ r: 1, g: 2, b: 3 });
  const key = { 'X-API-Key': 'another' };
  expect(await uploadInput(server.url, { name: 'frame_%05d.png', bytes }, key)).toMatchObject({
    name: 'frame_%05d.png',
  });
  const target = `/view?type=input&filename=${once('frame_%05d.png')}`;
  const answer = await fetch(server.url + target, { headers: key });
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
});

test.each(['/ws', '/api/ws'])('a socket at %s with an odd clientId is refused', async (path) => {
  for (const odd of ENCODINGS) {
    const answer = await say(server.port, upgradeText(`${path}?clientId=${odd}`));
    expectRefused('v1', answer, { what: odd });
  }
});

/**
 * Bodies with the fields that name something, of each route that has such. Forms: below. Assets are switched off by
 * default; `acceptance/assets.test.ts` sends them such texts.
 */
const BODIES: { readonly [route in V1RouteName]?: (odd: string) => readonly object[] } = {
  'POST /prompt': (odd) => [
    { prompt: {}, prompt_id: odd },
    { prompt: {}, client_id: odd },
    { prompt: {}, extra_data: { client_id: odd } },
    { prompt: {}, partial_execution_targets: [odd] },
  ],
  'POST /queue': (odd) => [{ delete: [odd] }, { cancel: [odd] }],
  'POST /interrupt': (odd) => [{ prompt_id: odd }],
  'POST /history': (odd) => [{ delete: [odd] }],
  'POST /api/jobs/cancel': (odd) => [{ job_ids: [odd] }],
  'POST /users': (odd) => [{ username: odd }],
  'POST /settings': (odd) => [{ [odd]: 1 }],
  'PATCH /internal/logs/subscribe': (odd) => [{ clientId: odd, enabled: true }],
};

test.each(Object.entries(BODIES))('%s refuses them in its body', async (route, bodiesWith) => {
  const [method = '', path = ''] = route.split(' ');
  for (const control of CONTROLS) {
    for (const body of bodiesWith(`${NAME}${control}b`)) {
      const answer = await ask(method, path, JSON.stringify(body));
      expect({ body, status: answer.status }).toMatchObject({ status: 400 });
      expectRefused('v1', answer, { what: JSON.stringify(body) });
    }
  }
});

describe.each(['/upload/image', '/upload/mask'])('the form of %s', (path) => {
  const file = { name: 'image', filename: 'z.png', data: 'x' };
  const send = async (...parts: Part[]) => {
    const { method, headers, body } = multipart(...parts);
    const answer = await fetch(server.url + path, {
      method,
      headers: { ...headers, ...HEADERS },
      body: new Uint8Array(body),
    });
    await answer.arrayBuffer();
    return answer.status;
  };

  test.each(['subfolder', 'type'])('refuses them in %s', async (name) => {
    for (const control of CONTROLS) {
      expect(await send(file, { name, value: `${control}a` })).toBe(400);
      expect(await send(file, { name, value: `a${control}b` })).toBe(400);
    }
  });

  test('refuses them in the file name, in either spelling', async () => {
    for (const control of CONTROLS) {
      expect(await send({ ...file, filename: `a${control}.png` })).toBe(400);
      const extended = `z"; filename*="UTF-8''a${once(control)}.png`;
      expect(await send({ ...file, filename: extended.replaceAll('"UTF', 'UTF') })).toBe(400);
      expect(await send({ ...file, filename: `C:\\a${control}\\z.png` })).toBe(400);
    }
  });

  test('refuses them in original_ref', async () => {
    if (path !== '/upload/mask') return;
    for (const field of ['filename', 'subfolder', 'type']) {
      for (const control of CONTROLS) {
        const ref = { filename: 'a.png', subfolder: '', type: 'input', [field]: `a${control}b` };
        const value = JSON.stringify(ref);
        expect(await send(file, { name: 'original_ref', value })).toBe(400);
      }
    }
  });
});

test('a graph that names a file so is refused, whatever a shorter name would find', async () => {
  for (const control of CONTROLS) {
    for (const image of [`a.png${control}`, `a.png${control} [input]`, `a${control}/a`]) {
      const prompt = {
        '1': { class_type: 'LoadImage', inputs: { image } },
        '2': { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
      };
      const body = JSON.stringify({ prompt });
      const answer = await fetch(`${server.url}/prompt`, {
        method: 'POST',
        body,
        headers: HEADERS,
      });
      expect([image, answer.status]).toEqual([image, 400]);
      await answer.arrayBuffer();
    }
  }
});

describe('v2', () => {
  const v2 = (path: string, init: RequestInit) =>
    fetch(`${server.url}/api/v2${path}`, {
      method: 'POST',
      ...init,
      headers: { ...HEADERS, ...(init.headers as object) },
    });

  test('refuses them in what is named in a body', async () => {
    const hash = `blake3:${'0'.repeat(64)}`;
    for (const control of CONTROLS) {
      const odd = `a${control}b`;
      for (const body of [{ hash: odd }, { hash, file_path: odd }, { hash, tags: [odd] }]) {
        const answer = await v2('/assets/from-hash', { body: JSON.stringify(body) });
        expect([body, answer.status]).toEqual([body, 404]);
        expect((await answer.json()).error.code).toBe('blob_not_found');
      }
    }
  });

  test('refuses them in the fields of an upload', async () => {
    for (const control of CONTROLS) {
      for (const name of ['file_path', 'tags', 'expected_hash', 'content_type']) {
        const form = new FormData();
        const fields = { content_type: 'text/plain', file_path: 'p', [name]: `a${control}b` };
        for (const [field, value] of Object.entries(fields)) form.append(field, value);
        form.append('file', new Blob(['x']), 'x');
        const answer = await v2('/assets', { body: form });
        expect([name, answer.status, (await answer.json()).error.code]).toEqual([
          name,
          422,
          'invalid_request',
        ]);
      }
    }
  });

  test.each(['\t', '\u0085'])('refuses %j in an Idempotency-Key', async (control) => {
    const headers = { 'Idempotency-Key': `a${control}b` };
    const submitted = await v2('/jobs', { headers, body: '{"workflow":{}}' });
    expect(submitted.status).toBe(422);
    expect((await submitted.json()).error.code).toBe('invalid_request');
  });
});

test.each(['\t', '\u0085'])('the router refuses %j in an Idempotency-Key', async (control) => {
  const answer = await fetch(`${server.url}/v1/models/local/digest`, {
    method: 'POST',
    headers: { ...HEADERS, 'Idempotency-Key': `a${control}b` },
    body: '{"text":"x"}',
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error_type: 'invalid_input' });
});
