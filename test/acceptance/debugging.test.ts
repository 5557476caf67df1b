// `--log-level debug` shows each v1 call and frame and each v2 call and event with its prompt id. A
// key is in none of it, however it was sent.
import { afterEach, expect, test } from 'vitest';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { CANARY } from '../support/processes/expect-healthy.ts';
import { flat } from '../support/graphs/workflows.ts';

let server: Holdover | undefined;
afterEach(() => server?.dispose());

type Line = { readonly event?: string; readonly promptId?: string; readonly level: number };

const linesOf = (holdover: Holdover): Line[] =>
  holdover
    .log()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);

async function run(holdover: Holdover, promptId: string): Promise<void> {
  const headers = { 'X-API-Key': CANARY };
  const socket = await connect(holdover.wsUrl, { clientId: promptId, headers });
  const body = {
    prompt: flat(),
    prompt_id: promptId,
    client_id: promptId,
    extra_data: { api_key_comfy_org: CANARY },
  };
  await postPrompt(holdover.url, body, { headers });
  await socket.untilDone(promptId);
  await getJson(`${holdover.url}/history/${promptId}?token=${CANARY}`, headers);
}

test('--log-level debug shows the whole way of a prompt, and no key', async () => {
  const holdover = await startHoldover({ args: ['--log-level', 'debug'] });
  server = holdover;
  await run(holdover, 'followed');
  const eventsOf = (): unknown[] =>
    linesOf(holdover).flatMap(({ event, promptId }) => (promptId === 'followed' ? [event] : []));
  await expect
    .poll(eventsOf)
    .toEqual(
      expect.arrayContaining([
        'v1.call',
        'v1.frame',
        'v2.call',
        'v2.event',
        'prompt.pending',
        'prompt.finished',
      ]),
    );
  expect(holdover.log()).not.toContain(CANARY);
  expect(holdover.log()).not.toContain(encodeURIComponent(CANARY));
});
