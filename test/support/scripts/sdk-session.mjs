// Drives a v2 service with the official SDK, unchanged; prints what it saw as one JSON line.
// COMFY_BASE_URL names the service. Needs Node >= 22, as the SDK does.
import { readFile } from 'node:fs/promises';
import { Comfy } from '@comfyorg/sdk';

const [, , picture] = process.argv;
const client = new Comfy();
const seen = {};

const generate = (steps) => ({
  1: {
    class_type: 'ReactionDiffusion',
    inputs: { width: 128, height: 128, seed: 7, steps, feed: 0.055, kill: 0.062 },
  },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'sdk' } },
});

const load = client.workflows.fromJson({
  10: { class_type: 'LoadImage', inputs: { image: '' } },
  13: { class_type: 'SaveImage', inputs: { images: ['10', 0], filename_prefix: 'loaded' } },
});
load.setInput('10', 'image', client.assets.fromFile(picture));
const job = await client.run(load);
const [output] = job.getOutputs('13');
seen.run = { status: job.status, name: output.name, bytes: (await output.toBytes()).length };

const streamed = await client.submit(client.workflows.fromJson(generate(40)));
const kinds = new Map();
for await (const event of streamed.events())
  kinds.set(event.kind, (kinds.get(event.kind) ?? 0) + 1);
await streamed.wait();
seen.events = { status: streamed.status, kinds: Object.fromEntries(kinds) };

const doomed = await client.submit(client.workflows.fromJson(generate(10_000)));
await doomed.cancel();
await doomed.wait().catch((error) => (seen.cancelError = error.constructor.name));
seen.cancel = doomed.status;

seen.refused = await client
  .run(client.workflows.fromJson({ 1: { class_type: 'KSampler', inputs: {} } }))
  .then(
    () => 'accepted',
    (error) => error.constructor.name,
  );

const corrupt = client.workflows.fromJson({
  1: {
    class_type: 'LoadImage',
    inputs: {
      image: client.assets.fromBytes(Buffer.from('no picture'), {
        name: 'x.png',
        contentType: 'image/png',
      }),
    },
  },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'bad' } },
});
seen.failed = await client.run(corrupt).then(
  () => 'succeeded',
  (error) => ({ name: error.constructor.name, message: error.message }),
);

const asset = client.assets.fromBytes(await readFile(picture), {
  name: 'again.jpg',
  contentType: 'image/jpeg',
});
seen.asset = typeof asset;
console.log(JSON.stringify(seen));
