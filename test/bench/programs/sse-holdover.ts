// Reads previews the way the remote client does, into the frames its sockets get.
import { DEFAULT_REMOTE_LIMITS } from '../../../src/upstreams/remote/limits.ts';
import { readStream } from '../../../src/upstreams/remote-events/read-stream.ts';
import { createConnections } from '../../../src/upstreams/remote-calls/connections.ts';
import { previewFrame, sniffPreview } from '../../../src/protocol/binary-frames.ts';
import { answer, ready } from './serve.ts';

const limits = DEFAULT_REMOTE_LIMITS;
const connections = createConnections(process.argv[2] ?? '', limits);

answer(async ({ events }: { readonly events: number }) => {
  const startedAt = performance.now();
  const reply = await connections.send({
    method: 'GET',
    path: `/${events}`,
    headers: { accept: 'text/event-stream' },
    headersTimeoutMs: 10_000,
    bodyTimeoutMs: 10_000,
    pool: 'bodies',
  });
  if (!reply.ok) throw reply.cause;
  let frames = 0;
  await readStream(reply.body, {
    secrets: [],
    idleTimeoutMs: limits.streamIdleTimeoutMs,
    afterTerminalMs: limits.afterTerminalMs,
    maxEventChars: limits.maxEventChars,
    onEvent(event) {
      if (event.event !== 'preview') return;
      const { bytes } = event.data;
      const mime = sniffPreview(bytes);
      if (mime !== undefined && previewFrame(bytes, mime).length > 8) frames++;
    },
  });
  return { frames, ms: performance.now() - startedAt };
});
ready();
