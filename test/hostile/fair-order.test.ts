// One user's many prompts do not hold up another's one.
import { describe, expect, test } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';

const ALICE = { 'X-API-Key': 'alice-key' };
const BOB = { 'X-API-Key': 'bob-key' };
const MANY = 30;

type Job = { readonly status: string; readonly started_at: string; readonly completed_at: string };

describe('the embedded engine', () => {
  const server = useHoldover({ upstream: 'embedded', args: ['--queue-limit', String(MANY)] });

  async function send(prompt: object, headers: Record<string, string>): Promise<string> {
    const { status, body } = await postPrompt(server.url, { prompt }, { headers });
    expect(status).toBe(200);
    return body.prompt_id;
  }

  async function jobsOf(headers: Record<string, string>): Promise<readonly Job[]> {
    const { jobs } = await getJson(`${server.url}/api/v2/jobs?limit=100`, headers);
    return await Promise.all(
      jobs.map(({ id }: { id: string }) => getJson(`${server.url}/api/v2/jobs/${id}`, headers)),
    );
  }

  test('runs the prompt of another user next, although the queue is full of one user’s', async () => {
    const [alice, bob] = [
      await connect(server.wsUrl, { clientId: null, query: `token=${ALICE['X-API-Key']}` }),
      await connect(server.wsUrl, { clientId: null, query: `token=${BOB['X-API-Key']}` }),
    ];
    const running = await send(endless(), ALICE);
    await alice.until((frame) => frame.kind === 'text' && frame.type === 'progress');
    const waiting: string[] = [];
    for (let i = 0; i < MANY; i++)
      waiting.push(await send(flat({ color: i, prefix: 'many' }), ALICE));
    const one = await send(flat({ prefix: 'one' }), BOB);
    const { queue_pending: shown } = await getJson(`${server.url}/queue`, ALICE);
    expect(shown.map(([, id]: [number, string]) => id)).toEqual(waiting);
    await fetch(`${server.url}/interrupt`, { method: 'POST', headers: ALICE });
    await bob.untilDone(one);
    await alice.untilDone(waiting.at(-1)!, 60_000);
    const [bobs] = await jobsOf(BOB);
    const before = (await jobsOf(ALICE)).filter(({ started_at: at }) => at < bobs!.started_at);
    expect(before.map(({ status }) => status)).toEqual(['canceled']);
    const history = await getJson(`${server.url}/history`, ALICE);
    expect(Object.keys(history)).toEqual([running, ...waiting]);
    await Promise.all([alice.close(), bob.close()]);
  });
});
