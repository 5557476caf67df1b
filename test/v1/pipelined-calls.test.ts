// A prompt that is pipelined behind a long answer: as in v1, a call is served when the one before has been answered.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { endless, flat } from '../support/graphs/workflows.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

const holdover = useHoldover({ upstream: 'embedded' });

test('a prompt behind an event stream is accepted when the stream has ended', async () => {
  const { body: running } = await postPrompt(holdover.url, { prompt: endless() });
  const { jobs } = await getJson(`${holdover.url}/api/v2/jobs`);
  const promptId = randomUUID();
  const body = JSON.stringify({ prompt: flat(), prompt_id: promptId });
  const head = (line: string, length: number) =>
    `${line} HTTP/1.1\r\nHost: 127.0.0.1:${holdover.port}\r\nContent-Length: ${length}\r\n\r\n`;
  const socket = connect(holdover.port, '127.0.0.1');
  const events = head(`GET /api/v2/jobs/${jobs[0].id}/events`, 0);
  socket.write(events + head('POST /prompt', Buffer.byteLength(body)) + body);
  const isQueued = async () =>
    JSON.stringify(await getJson(`${holdover.url}/queue`)).includes(promptId);
  await once(socket, 'data');
  expect(await isQueued()).toBe(false);
  await fetch(`${holdover.url}/interrupt`, { method: 'POST' });
  const ended = async () => Object.keys(await getJson(`${holdover.url}/history`));
  await expect.poll(ended).toEqual(expect.arrayContaining([running.prompt_id, promptId]));
  socket.destroy();
});
