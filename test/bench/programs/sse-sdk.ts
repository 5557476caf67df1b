// Reads previews through the SDK's own stream parser, into the same frames.
import { previewFrame, sniffPreview } from '../../../src/protocol/binary-frames.ts';
import { answer, ready } from './serve.ts';

type RawEvent = { readonly event: string; readonly data: { readonly data_base64?: string } };

// By file: its package wants a newer Node for other things it does, and exports none of this.
const parser = new URL(
  '../../../../../node_modules/@comfyorg/sdk/dist/low/sse.js',
  import.meta.url,
);
const { iterateSse } = (await import(parser.href)) as {
  readonly iterateSse: (body: ReadableStream<Uint8Array>) => AsyncIterable<RawEvent>;
};
const origin = process.argv[2] ?? '';

answer(async ({ events }: { readonly events: number }) => {
  const startedAt = performance.now();
  const { body } = await fetch(`${origin}/${events}`);
  let frames = 0;
  if (body === null) return { frames, ms: 0 };
  for await (const { data } of iterateSse(body)) {
    const bytes = Buffer.from(data.data_base64 ?? '', 'base64');
    const mime = sniffPreview(bytes);
    if (mime !== undefined && previewFrame(bytes, mime).length > 8) frames++;
  }
  return { frames, ms: performance.now() - startedAt };
});
ready();
