// The floor of a relay: only what a prompt in front of a v2 service cannot do without. One commit that is synced while the
// job is sent, one event stream, frames as events come, one commit before the last frame. Of a prompt that waits it keeps
// its text and two ids: jobs end in their order, and a stream is opened for the first ones. A service whose queue is full
// gets the job when an earlier one has ended.
import { randomUUID } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { openRecords } from './floor-records.ts';
import { readBody, serveFloor } from './floor-server.ts';

const [dir = '', upstream = ''] = process.argv.slice(2);
const records = openRecords(join(dir, `${randomUUID()}.db`), { first: ['prompts'], last: [] });
const agent = new Agent({ keepAlive: true });
const MOST_STREAMS = 50;
const unfollowed: Waiting[] = [];
const texts = new Map<string, string>();
let streams = 0;

type Waiting = { readonly id: string; job: string | undefined };

const client = serveFloor(async (body) => {
  const id = randomUUID();
  records.insert(id, body);
  const [job] = await Promise.all([submit(body), records.sync()]);
  texts.set(id, body);
  unfollowed.push({ id, job });
  followNext();
  return id;
});

function followNext(): void {
  if (streams === MOST_STREAMS) return;
  const next = unfollowed.shift();
  if (next === undefined) return;
  streams++;
  void follow(next).finally(() => {
    streams--;
    followNext();
  });
}

/** `undefined`: the queue of the service is full. */
async function submit(body: string): Promise<string | undefined> {
  const { prompt } = JSON.parse(body) as { prompt: object };
  const answer = await call('POST', '/api/v2/jobs', JSON.stringify({ workflow: prompt }));
  const text = await readBody(answer);
  if (text.includes('"queue_full"')) return undefined;
  if (answer.statusCode !== 201) throw new Error(text);
  return (JSON.parse(text) as { id: string }).id;
}

/** The stream of a job has all that its history entry needs. */
async function follow(waiting: Waiting): Promise<void> {
  const { id } = waiting;
  const job = (waiting.job ??= await submit(texts.get(id) ?? ''));
  if (job === undefined) return void unfollowed.unshift(waiting);
  const answer = await call('GET', `/api/v2/jobs/${job}/events`);
  const outputs: unknown[] = [];
  let text = '';
  for await (const chunk of answer) {
    text += (chunk as Buffer).toString();
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = dataOf(event);
      if (data === undefined) continue;
      if (event.startsWith('event: output')) outputs.push(data);
      if (data.status === 'succeeded') return finish(id, outputs);
      client.sendFrames(id, 1);
    }
  }
}

/** `undefined`: a comment. */
function dataOf(event: string): { readonly status?: string } | undefined {
  const at = event.indexOf('\ndata: ');
  return at === -1 ? undefined : JSON.parse(event.slice(at + '\ndata: '.length));
}

function finish(id: string, outputs: readonly unknown[]): void {
  client.sendFrames(id);
  records.finish(id, JSON.stringify({ status: 'success', outputs, prompt: texts.get(id) }));
  texts.delete(id);
  client.sendLast(id);
}

function call(method: string, path: string, body = ''): Promise<IncomingMessage> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request(`${upstream}${path}`, { method, agent, headers }, resolve);
    sent.on('error', reject);
    sent.end(body);
  });
}
