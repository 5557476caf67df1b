import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Holdover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

type Lines = Readonly<Record<string, string | string[]>>;
describe('whose a call is', () => {
  const holdover = useHoldover();
  let promptId: string;
  beforeAll(async () => {
    const headers = { 'X-API-Key': 'k' };
    promptId = (await postPrompt(holdover.url, { prompt: flat() }, { headers })).body.prompt_id;
  });

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
    const status = await statusOf(holdover, target.replace(/^\/job/, '/api/job'), headers);
    expect(status).toBe(isTheirs ? 200 : 404);
  });
});

async function statusOf(
  { port }: Holdover,
  path: string,
  headers: Lines,
): Promise<number | undefined> {
  const call = request({ host: '127.0.0.1', port, path, headers: { ...headers } });
  call.end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}
