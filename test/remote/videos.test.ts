// The hosted service lists videos in `video`, the original server among the `images`.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { outputOf } from '../support/upstreams/job-scripts.ts';
import { openPair } from '../support/processes/holdover-before-hostile.ts';
import { type Recorder, connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const id = expect.any(String);
const file = (filename: string): object => ({ filename, subfolder: '', type: 'output', id });
const AMONG_IMAGES = { images: [file('a.png'), file('b.mp4')], animated: [true] };
const IN_VIDEO = { images: [file('a.png')], video: [file('b.mp4')] };
const HOSTED = { 'X-API-Key': 'k' };
const BODY = { prompt: flat(), client_id: 'mine' };
const LOCAL = { Authorization: 'Bearer k' };

const outputIn = ({ frames }: Recorder): unknown =>
  frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'executed' ? [frame.data.output] : [],
  );

describe('a picture and a video of one node', () => {
  let url: string;
  let promptId: string;
  const heard: { [form: string]: unknown } = {};

  beforeAll(async () => {
    const { holdover, upstream } = await openPair({});
    upstream.script(async (job, server) => {
      server.change(job.id, { status: 'running' });
      const video = { name: 'b.mp4', content_type: 'video/mp4', type: 'video' };
      const outputs = [outputOf(job, { name: 'a.png' }), outputOf(job, video)];
      server.change(job.id, { status: 'succeeded', outputs });
    });
    const hosted = await connect(holdover.wsUrl, { clientId: 'mine', query: 'token=k' });
    const local = await connect(holdover.wsUrl, { clientId: 'mine', headers: LOCAL });
    const { body } = await postPrompt(holdover.url, BODY, { headers: LOCAL });
    await Promise.all([hosted, local].map((socket) => socket.untilDone(body.prompt_id)));
    Object.assign(heard, { hosted: outputIn(hosted), local: outputIn(local) });
    url = holdover.url;
    promptId = body.prompt_id;
    return async () => {
      for (const { socket } of [hosted, local]) socket.terminate();
      await holdover.dispose();
      await upstream.close();
    };
  });

  test('reach each socket in its form', () => {
    expect(heard).toEqual({ hosted: [IN_VIDEO], local: [AMONG_IMAGES] });
  });

  test.each(['history', 'history_v2'])('are in each form in %s', async (route) => {
    const outputs = async (headers: Record<string, string>): Promise<unknown> =>
      (await getJson(`${url}/api/${route}/${promptId}`, headers))[promptId].outputs;
    expect(await outputs(HOSTED)).toEqual({ '9': IN_VIDEO });
    expect(await outputs(LOCAL)).toEqual({ '9': AMONG_IMAGES });
  });

  test('are in each form in the job, and found by their kind', async () => {
    const path = `${url}/api/jobs/${promptId}`;
    expect((await getJson(path, HOSTED)).outputs).toEqual({ '9': IN_VIDEO });
    expect((await getJson(path, LOCAL)).outputs).toEqual({ '9': AMONG_IMAGES });
    for (const headers of [HOSTED, LOCAL]) {
      const { jobs } = await getJson(`${url}/api/jobs?output_type=video`, headers);
      expect(jobs).toMatchObject([{ id: promptId, outputs_count: 2 }]);
    }
  });
});
