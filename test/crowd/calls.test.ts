import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

// Calls in every form a client may have: a refusal of the hosted service is JSON with `code` and
// `message`, that of the original has no body at all.

type Lines = Readonly<Record<string, string | string[]>>;
type Call = readonly [target: string, headers: Lines, dialect: 'local' | 'hosted'];

const basic = (pair: string): Lines => ({
  Authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
});

const CALLS: readonly Call[] = [
  ['/api/view', {}, 'local'],
  ['/view', {}, 'local'],
  ['/view', { 'X-API-Key': 'k' }, 'local'],
  ['/view', { 'X-API-Key': '' }, 'local'],
  ['/view?token=k', {}, 'local'],
  ['/view?path=/api/', { 'X-API-Key': 'k' }, 'local'],
  ['/api/view?token=k', {}, 'local'],
  ['/api/view?X-API-Key=k', {}, 'local'],
  ['/api/view', { Authorization: 'Bearer k' }, 'local'],
  ['/api/view', { Authorization: 'Bearer ' }, 'local'],
  ['/api/view', basic(':k'), 'local'],
  ['/api/view', { Cookie: 'X-API-Key=k' }, 'local'],
  ['/api/view', { 'X-API-Key-Id': 'k' }, 'local'],
  ['/api/view', { 'Comfy-User': 'k' }, 'local'],
  ['/api/view', { 'X-API-Key': 'k' }, 'hosted'],
  ['/api/view', { 'x-api-key': 'k' }, 'hosted'],
  ['/api/view', { 'X-Api-KEY': 'K' }, 'hosted'],
  ['/api/view', { 'X-API-Key': '' }, 'hosted'],
  ['/api/view', { 'X-API-Key': '   ' }, 'hosted'],
  ['/api/view', { 'X-API-Key': ['k', 'other'] }, 'hosted'],
  ['/api/view', { 'X-API-Key': ['', 'k'] }, 'hosted'],
  ['/api/view', { 'X-API-Key': '', Authorization: 'Bearer k' }, 'hosted'],
  ['/api/view', { 'X-API-Key': 'k', Authorization: 'Bearer other' }, 'hosted'],
  ['/api/view', { 'X-API-Key': 'k', ...basic(':other') }, 'hosted'],
  ['/api/view', { 'X-API-Key': 'k', 'User-Agent': 'Mozilla/5.0' }, 'hosted'],
  ['/api/view', { 'X-API-Key': 'k', 'Comfy-User': '' }, 'hosted'],
  ['/api/view?token=other', { 'X-API-Key': 'k' }, 'hosted'],
  ['/api/view?filename=', { 'X-API-Key': 'k' }, 'hosted'],
  ['/api/view?filename=absent.png', { 'X-API-Key': 'k' }, 'hosted'],
  ['/api/view?filename=absent.png', { 'X-API-Key': '' }, 'hosted'],
  ['/api/view?filename=absent.png', {}, 'local'],
  ['/view?filename=absent.png', { 'X-API-Key': 'k' }, 'local'],
  ['http://HOST/api/view', { 'X-API-Key': 'k' }, 'hosted'],
  ['http://HOST/view?a=/api/view', { 'X-API-Key': 'k' }, 'local'],
];

describe.each<[string, readonly string[], (call: Call) => Call[2]]>([
  ['told by the form', [], ([, , dialect]) => dialect],
  ['with --dialect local', ['--dialect', 'local'], () => 'local'],
  ['with --dialect hosted', ['--dialect', 'hosted'], () => 'hosted'],
])('%s', (_name, args, dialectOf) => {
  let holdover: Holdover;
  beforeAll(async () => {
    holdover = await startHoldover({ args });
  });
  afterAll(() => holdover.dispose());

  test.each(CALLS.map((call): Call => [call[0], call[1], dialectOf(call)]))(
    'GET %s %j is %s',
    async (target, headers, dialect) => {
      const { status, body } = await get(holdover, target, headers);
      expect([400, 404]).toContain(status);
      if (dialect === 'local') expect(body).toBe('');
      else {
        expect(JSON.parse(body)).toMatchObject({
          code: expect.any(String),
          message: expect.any(String),
        });
      }
    },
  );
});

describe('whose a call is', () => {
  let holdover: Holdover;
  let promptId: string;
  beforeAll(async () => {
    holdover = await startHoldover();
    const headers = { 'X-API-Key': 'k' };
    promptId = (await postPrompt(holdover.url, { prompt: flat() }, { headers })).body.prompt_id;
  });
  afterAll(() => holdover.dispose());

  test.each<[string, Lines, boolean]>([
    ['/prompt', { 'X-API-Key': 'k' }, true],
    ['/api/prompt', { 'X-API-Key': 'k' }, true],
    ['/api/prompt', { 'x-API-key': ' k ' }, true],
    ['/api/prompt', { Authorization: 'Bearer k' }, true],
    ['/api/prompt', { 'X-API-Key': '', Authorization: 'Bearer k' }, true],
    ['/api/prompt', { 'X-API-Key': 'k', Authorization: 'Bearer other' }, true],
    ['/api/prompt?token=k', {}, true],
    ['/api/prompt?token=k', { 'X-API-Key': '' }, true],
    ['/api/prompt?token=&token=k', {}, false],
    ['/api/prompt', { 'X-API-Key': 'K' }, false],
    ['/api/prompt', { 'X-API-Key': '' }, false],
    ['/api/prompt', {}, false],
    ['/api/prompt', { 'X-API-Key': 'other', Authorization: 'Bearer k' }, false],
    ['/api/prompt?token=k', { 'X-API-Key': 'other' }, false],
    // Two keys are neither of them.
    ['/api/prompt', { 'X-API-Key': ['k', 'other'] }, false],
  ])('%s %j is that of the key: %s', async (path, headers, isTheirs) => {
    const target = path.replace('prompt', `job/${promptId}/status`);
    const { status } = await get(holdover, target.replace(/^\/job/, '/api/job'), headers);
    expect(status).toBe(isTheirs ? 200 : 404);
  });
});

async function get(
  { port }: Holdover,
  path: string,
  headers: Lines,
): Promise<{ readonly status: number | undefined; readonly body: string }> {
  const target = path.replace('HOST', `127.0.0.1:${port}`);
  const call = request({ host: '127.0.0.1', port, path: target, headers: { ...headers } });
  call.end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, body: await text(answer) };
}
