// Resources: what one peer can make the process hold, and what the others notice of it.
import { afterEach, expect, test, vi } from 'vitest';
import { useHoldover } from '../support/processes/use-holdover.ts';
import {
  type Wire,
  dial,
  readAnswer,
  requestText,
  upgradeText,
  wsFrame,
} from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { growing } from '../support/graphs/workflows.ts';
import { growthMb } from '../support/processes/resident-memory.ts';

const MEBIBYTE = 1024 * 1024;
vi.setConfig({ testTimeout: 30_000 });

const server = useHoldover({
  args: ['--max-upload-size', '300', '--limits', '{"socketsPerUser":1000}'],
  // Its generator is to stream previews as fast as it can.
  env: { HOLDOVER_LOG_LEVEL: 'warn', NODE_OPTIONS: '' },
});
const wires: Wire[] = [];

afterEach(async () => {
  for (const wire of wires.splice(0)) wire.reset();
  await expectHealthy(server);
});

async function send(wire: Wire, bytes: string | Uint8Array): Promise<void> {
  await new Promise((resolve) => wire.socket.write(bytes, resolve));
}

async function socketThatNeverReads(clientId: string): Promise<Wire> {
  const wire = await dial(server.port);
  wires.push(wire);
  wire.send(upgradeText(`/ws?clientId=${clientId}`));
  await wire.until('"sid"');
  wire.socket.pause();
  return wire;
}

async function upload(megabytes: number): Promise<number> {
  const wire = await dial(server.port);
  const open = '--b\r\nContent-Disposition: form-data; name="image"; filename="big.bin"\r\n\r\n';
  const close = '\r\n--b--\r\n';
  const length = open.length + megabytes * MEBIBYTE + close.length;
  const headers = ['Content-Type: multipart/form-data; boundary=b', `Content-Length: ${length}`];
  await send(wire, requestText('/upload/image', { method: 'POST', headers }) + open);
  const block = Buffer.alloc(MEBIBYTE, `${megabytes} `);
  for (let i = 0; i < megabytes; i++) await send(wire, block);
  await send(wire, close);
  return (await wire.answer()).status;
}

test('an upload of 128 MB is not held in memory, nor is its download', async () => {
  expect(await upload(20)).toBe(200);
  const grown = await growthMb(server, async () => {
    expect(await upload(128)).toBe(200);
    const answer = await fetch(`${server.url}/view?type=input&filename=big%20(1).bin`);
    let size = 0;
    for await (const chunk of answer.body ?? []) size += chunk.length;
    expect(size).toBe(128 * MEBIBYTE);
  });
  expect(grown).toBeLessThan(90);
});

test('a download that is never read holds no more than its connection', async () => {
  const grown = await growthMb(server, async () => {
    for (let i = 0; i < 20; i++) {
      const wire = await dial(server.port);
      wires.push(wire);
      wire.socket.pause();
      wire.send(requestText('/view?type=input&filename=big.bin'));
      wire.send(requestText('/object_info'));
    }
    await getJson(`${server.url}/queue`);
    await new Promise((resolve) => setTimeout(resolve, 300));
  });
  expect(grown).toBeLessThan(90);
});

test('sockets that never read cost little while previews stream, and the others miss nothing', async () => {
  const steps = 400;
  const listener = await connect(server.wsUrl, { clientId: 'slow' });
  for (let i = 0; i < 10; i++) await socketThatNeverReads('slow');
  const grown = await growthMb(server, async () => {
    const prompt = growing({ steps });
    const { body } = await postPrompt(server.url, {
      prompt,
      client_id: 'slow',
      extra_data: { preview_method: 'auto' },
    });
    await listener.untilDone(body.prompt_id);
    const outline = listener.outline(body.prompt_id);
    const progress = outline.flatMap((each) => /^progress:(\d+)/.exec(each)?.[1] ?? []).map(Number);
    // Steps without a picture come every 100 ms, but the first and the last always.
    expect(progress).toEqual(progress.toSorted((a, b) => a - b));
    expect([progress[0], progress.at(-1)]).toEqual([1, steps]);
    expect(outline).toContain('binary:1');
  });
  await listener.close();
  expect(grown).toBeLessThan(150);
});

test('sockets that never read take no text from the others, and hold no more than was said', async () => {
  const texts = Array.from({ length: 12 }, (_, i) => `${i}`.padEnd(600_000, 'x'));
  const listener = await connect(server.wsUrl, { clientId: 'flooded' });
  for (let i = 0; i < 4; i++) await socketThatNeverReads('flooded');
  const grown = await growthMb(server, async () => {
    for (const source of texts) {
      const prompt = { '9': { class_type: 'PreviewAny', inputs: { source } } };
      const { body } = await postPrompt(server.url, { prompt, client_id: 'flooded' });
      await listener.untilDone(body.prompt_id);
    }
  });
  const heard = listener.frames.flatMap((frame) =>
    frame.kind === 'text' && frame.type === 'executed' ? [frame.data.output.text[0].length] : [],
  );
  expect(heard).toEqual(texts.map(({ length }) => length));
  await listener.close();
  expect(grown).toBeLessThan(250);
});

test('a client that opens its socket after a run of several megabytes hears all of it', async () => {
  const texts = Array.from({ length: 60 }, (_, i) => [
    `${100 + i}`,
    { class_type: 'PreviewAny', inputs: { source: `${i}`.padEnd(50_000, 'x') } },
  ]);
  const prompt = { ...Object.fromEntries(texts), ...growing({ steps: 300 }) };
  const { body } = await postPrompt(server.url, { prompt, client_id: 'late' });
  // Not by its history: a socket that connects after the result was fetched is told nothing of it.
  const idle = { exec_info: { queue_remaining: 0 } };
  await expect.poll(() => getJson(`${server.url}/prompt`), { timeout: 20_000 }).toEqual(idle);
  const late = await connect(server.wsUrl, { clientId: 'late' });
  await late.untilDone(body.prompt_id);
  const bytes = late.frames.reduce(
    (sum, each) => sum + (each.kind === 'text' ? each.text.length : 0),
    0,
  );
  expect(bytes).toBeGreaterThan(2 * MEBIBYTE);
  expect(late.outline(body.prompt_id)).toEqual(
    expect.arrayContaining(['progress:1/300', 'execution_success']),
  );
  await late.close();
});

test('a thousand sockets are held, the next is 503 before the upgrade, and the rest of us is served', async () => {
  const open = async (): Promise<string> => {
    const wire = await dial(server.port);
    wires.push(wire);
    wire.send(upgradeText('/ws'));
    return (await wire.until('\r\n\r\n')).raw.slice(0, 12);
  };
  const grown = await growthMb(server, async () => {
    for (let i = 0; i < 20; i++) {
      const some = await Promise.all(Array.from({ length: 50 }, open));
      expect(new Set(some)).toEqual(new Set(['HTTP/1.1 101']));
    }
  });
  expect(await open()).toBe('HTTP/1.1 503');
  expect(await getJson(`${server.url}/prompt`)).toEqual({ exec_info: { queue_remaining: 0 } });
  // Half of it is the price of the connections themselves.
  expect(grown).toBeLessThan(80);
});

test('half-finished messages and requests hold no more than has been sent', async () => {
  const grown = await growthMb(server, async () => {
    for (let i = 0; i < 50; i++) {
      const wire = await socketThatNeverReads('half');
      wire.send(wsFrame(1, 'x', { declare: 4 * MEBIBYTE }));
      const request = await dial(server.port);
      wires.push(request);
      const headers = [`Content-Length: ${250 * MEBIBYTE}`];
      request.send(`${requestText('/prompt', { method: 'POST', headers })}{`);
    }
    await getJson(`${server.url}/queue`);
  });
  expect(grown).toBeLessThan(60);
});

test('a hundred requests on one connection, sent at once, are answered in order', async () => {
  const wire = await dial(server.port);
  const keep = { headers: ['Connection: keep-alive'] };
  const many = Array.from({ length: 99 }, (_, i) => requestText(`/history/pipelined-${i}`, keep));
  wire.send(many.join('') + requestText('/healthz'));
  const { raw } = await wire.answer();
  expect(raw.match(/HTTP\/1\.1 200/g)).toHaveLength(100);
  expect(readAnswer(Buffer.from(raw, 'latin1')).status).toBe(200);
});
