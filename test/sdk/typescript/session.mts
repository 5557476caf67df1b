// Drives a v2 service with the official TypeScript SDK, unchanged: node session.mts PICTURE OUTPUT_DIR KEYS_JSON
// COMFY_BASE_URL and COMFY_ROUTER_BASE_URL name the service. Needs Node 22.18 or newer.
// Prints what it saw, the SDK's public surface and which of it was used, as one JSON line.
import { once } from 'node:events';
import { appendFile, copyFile, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import * as sdk from '@comfyorg/sdk';
import { noted, refusal, surface, usedNames, watch } from './surface.mts';

const [, , picture = '', out = '', keysJson = '{}'] = process.argv;
const keys = JSON.parse(keysJson) as { readonly [name: string]: string };
watch();
const config = noted('config', sdk.config);
const resolveBaseUrl = noted('resolveBaseUrl', sdk.resolveBaseUrl);
const resolveCredentials = noted('resolveCredentials', sdk.resolveCredentials);
const run = noted('models.run', sdk.models.run.bind(sdk.models));
const signal = AbortSignal.timeout(120_000);

let calls = 0;
const client = new sdk.Comfy({
  apiKey: keys['user'] ?? '',
  timeoutMs: 60_000,
  clientInfo: 'holdover-test/1',
  fetch: (...args: Parameters<typeof fetch>) => {
    calls++;
    return fetch(...args);
  },
} satisfies Required<sdk.ComfyOptions>);

const loading = (image: unknown = '') => ({
  10: { class_type: 'LoadImage', inputs: { image } },
  13: { class_type: 'SaveImage', inputs: { images: ['10', 0], filename_prefix: 'loaded' } },
});
const growing = (steps: number, seed: number) => ({
  1: {
    class_type: 'ReactionDiffusion',
    inputs: { width: 128, height: 128, seed, steps, feed: 0.055, kill: 0.062 },
  },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'grown' } },
});

/** Serves these bytes at a URL once. */
async function servedOnce(bytes: Uint8Array): Promise<string> {
  const server = createServer((_, response) => response.end(bytes, () => server.close()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/served.txt`;
}

async function assets() {
  type Options<Call extends (...args: never[]) => unknown> = Required<
    NonNullable<Parameters<Call>[1]>
  >;
  const named = { filename: 'named.txt', contentType: 'text/plain' };
  const path = join(out, 'typescript.jpg');
  await copyFile(picture, path);
  await appendFile(path, 'typescript');
  const fromFile = client.assets.fromFile(path);
  const hash = await fromFile.hash();
  await fromFile.commit(...([signal] satisfies Required<Parameters<sdk.Asset['commit']>>));
  const again = client.assets.fromBytes(
    await readFile(path),
    named satisfies Options<sdk.AssetFactory['fromBytes']>,
  );
  await again.commit();
  const text = Buffer.from('text of typescript');
  const streamed = await client.assets.fromStream(
    Readable.from([text]),
    named satisfies Options<sdk.AssetFactory['fromStream']>,
  );
  const reference = await streamed.asReference(
    ...([signal] satisfies Required<Parameters<sdk.Asset['asReference']>>),
  );
  const fromUrl = await client.assets.fromUrl(await servedOnce(text), {
    signal,
  } satisfies Options<sdk.AssetFactory['fromUrl']>);
  await fromUrl.commit();
  const got = await client.assets.get(fromFile.id ?? '');
  const changed = join(out, 'changed-typescript');
  await writeFile(changed, 'one typescript');
  const mismatch = client.assets.fromFile(changed);
  await mismatch.hash();
  await writeFile(changed, 'two typescript');
  const seen = {
    created: [fromFile.createdNew, again.createdNew],
    sameHash: (await got.hash()) === hash && (await again.hash()) === hash,
    reference: [reference.info.id === streamed.id, reference.info.file_path],
    got: [got.filePath, got.jobId, got.expiresAt],
    sameByUrl: (await fromUrl.hash()) === (await streamed.hash()),
    mismatch: await refusal(() => mismatch.commit()),
  };
  await again.delete(...([signal] satisfies Required<Parameters<sdk.Asset['delete']>>));
  const { id = '' } = fromUrl;
  await client.assets.delete(
    ...([id, signal] satisfies Required<Parameters<sdk.AssetFactory['delete']>>),
  );
  return { ...seen, deleted: await refusal(() => client.assets.get(id)) };
}

async function jobs() {
  const file = join(out, 'workflow-typescript.json');
  await writeFile(file, JSON.stringify(loading()));
  const workflow = await client.workflows.fromFile(file);
  workflow.setInput('10', 'image', client.assets.fromFile(picture));
  const job = await client.run(workflow, {
    timeoutMs: 60_000,
    apiKey: 'comfyui-partner',
    signal,
  } satisfies Required<NonNullable<Parameters<sdk.Comfy['run']>[1]>>);
  const [output] = job.getOutputs('13');
  if (!output) throw new Error('no output');
  const whole = await output.toBytes();
  const part = { range: [2, 5], signal, timeoutMs: 30_000 } as const;
  const bytes = await output.toBytes(
    part satisfies Required<NonNullable<Parameters<sdk.Output['toBytes']>[0]>>,
  );
  const saved = await output.toFile(
    join(out, 'typescript.png'),
    part satisfies Required<NonNullable<Parameters<sdk.Output['toFile']>[1]>>,
  );
  const link = await output.getDownloadUrl();
  const headers = { Authorization: `Bearer ${keys['user']}` };
  const linked = new Uint8Array(await (await fetch(link.url, { headers })).arrayBuffer());
  const graph = await job.getWorkflow(
    ...([signal] satisfies Required<Parameters<sdk.Job['getWorkflow']>>),
  );
  return {
    ended: [job.status, job.error ?? null, job.outputs.length],
    output: [output.name, output.nodeId, output.type, output.contentType],
    madeBy: [output.jobId === job.id, (await client.assets.get(output.id)).jobId === job.id],
    isWhole: whole.length === output.sizeBytes,
    ranges: [bytes, await readFile(saved)].map(
      (some) => whole.subarray(2, 6).join() === some.join(),
    ),
    link: linked.join() === whole.join(),
    workflow: [graph.format, Object.keys(graph.workflow)],
  };
}

async function events() {
  const workflow = client.workflows.fromString(JSON.stringify(growing(40, 7)));
  const options = { idempotencyKey: 'labels-typescript', apiKey: '', signal } satisfies Required<
    NonNullable<Parameters<sdk.Comfy['submit']>[1]>
  >;
  const job = await client.submit(workflow, options);
  const seen: sdk.ComfyEvent[] = [];
  for await (const event of job.events(
    ...([signal] satisfies Required<Parameters<sdk.Job['events']>>),
  )) {
    seen.push(event);
  }
  await job.result(...([signal] satisfies Required<Parameters<sdk.Job['result']>>));
  const last = seen.at(-1);
  const again = await client.jobs.get(job.id);
  return {
    kinds: [...new Set(seen.map(({ kind }) => kind))].sort(),
    steps: seen.some((event) => event.kind === 'progress' && (event.steps ?? 0) > 0),
    preview: seen.find((event) => event.kind === 'preview')?.contentType,
    outputs: seen.flatMap((event) => (event.kind === 'outputReady' ? [event.output.name] : []))
      .length,
    last: last?.kind === 'statusChange' ? last.status : last?.kind,
    again: again.status,
    reused: await refusal(() => client.submit(workflow, options)),
  };
}

async function refusals() {
  const submit = (graph: object) => () =>
    client.submit(client.workflows.fromJson(graph as sdk.WorkflowGraph));
  const none = '00000000-0000-4000-8000-000000000000';
  const broken = loading(client.assets.fromBytes(Buffer.from('no picture'), { filename: 'b.png' }));
  return {
    invalid: await refusal(submit({ 1: { class_type: 'Nonsense', inputs: {} } })),
    missing: await refusal(submit(loading({ __type: 'core/ASSET', info: { id: none } }))),
    ui: await refusal(submit({ nodes: [], links: [], last_node_id: 1 })),
    unknownJob: await refusal(() => client.jobs.get(none)),
    failed: await refusal(() => client.run(client.workflows.fromJson(broken))),
  };
}

/** One job runs and one waits, which is all there is room for; a third is sent again until there is. */
async function cancelling() {
  const submit = (steps: number, seed: number) =>
    client.submit(client.workflows.fromJson(growing(steps, seed)));
  const refresh = [signal] satisfies Required<Parameters<sdk.Job['refresh']>>;
  const running = await submit(10_000, 12);
  while ((await running.refresh(...refresh)).status !== 'running') await sleep(50);
  const waiting = await submit(1, 13);
  const queued = waiting.status;
  let isAccepted = false;
  const third = submit(1, 14).finally(() => (isAccepted = true));
  await sleep(500);
  const isRefused = !isAccepted;
  await waiting.cancel(...([signal] satisfies Required<Parameters<sdk.Job['cancel']>>));
  const late = await refusal(() =>
    running.wait(...([0, signal] satisfies Required<Parameters<sdk.Job['wait']>>)),
  );
  await running.cancel();
  const ended = await running.wait();
  return {
    states: [queued, waiting.status, ended.status],
    late: late.name,
    result: (await refusal(() => running.result())).name,
    third: [isRefused, (await (await third).result()).status],
  };
}

async function models() {
  const target = process.env['COMFY_ROUTER_BASE_URL'] ?? '';
  config({
    credentials: keys['user'] ?? '',
    baseUrl: target,
  } satisfies Required<sdk.ComfyConfig>);
  const image = 'local/procedural-image';
  const input = { width: 32, height: 32, seed: 5 };
  const options = {
    signal,
    timeoutMs: 30_000,
    idempotencyKey: 'typescript',
    retry: {
      budgetMs: 3000,
      baseDelayMs: 50,
      maxDelayMs: 100,
    } satisfies Required<sdk.RetryOptions>,
  } satisfies Required<sdk.RunOptions>;
  const first = await run(image, input, options);
  const again = await run(image, input, options);
  const delay = (more: object, retry: sdk.RunOptions = { retry: false }) =>
    refusal(() => run('local/delay', { seconds: 0, echo: 1, ...more }, retry));
  const startedAt = performance.now();
  const retried = await delay({ outcome: 'provider_error' }, { retry: { budgetMs: 500 } });
  return {
    run: [Boolean(first.requestId), JSON.stringify(first.data) === JSON.stringify(again.data)],
    where: [resolveBaseUrl() === target, resolveCredentials() === keys['user']],
    conflict: await refusal(() => run(image, { ...input, seed: 6 }, options)),
    unknown: await refusal(() => run('local/digset', {}, { retry: false })),
    invalid: await refusal(() =>
      run('local/image-resize', { width: 0, height: 8 }, { retry: false }),
    ),
    refused: await delay({ outcome: 'content_policy_violation' }),
    failed: await delay({ outcome: 'provider_error' }),
    late: await delay({ outcome: 'provider_timeout' }),
    retried: [retried.name, performance.now() - startedAt > 100],
    aborted: (await delay({ seconds: 60 }, { signal: AbortSignal.timeout(100), retry: false }))
      .name,
  };
}

const toRouterError = noted('routerErrors.toRouterError', sdk.routerErrors.toRouterError);

/** The router's own classes: a program that calls it without the SDK's `run` makes them of an answer. */
async function routerErrors() {
  const cases: readonly [string, string, object][] = [
    ['user', 'digset', {}],
    ['user', 'image-resize', { width: 0, height: 8 }],
    ['user', 'delay', { outcome: 'content_policy_violation' }],
    ['user', 'delay', { outcome: 'provider_error' }],
    ['user', 'delay', { outcome: 'provider_timeout' }],
    ['unknown', 'delay', {}],
    ['forbidden', 'delay', {}],
    ['disabled', 'delay', {}],
    ['poor', 'delay', { price_cents: 5 }],
    ['rare', 'delay', {}],
    ['alone', 'delay', { seconds: 1 }],
    ['alone', 'delay', { seconds: 1 }],
  ];
  const ended = cases.map(async ([key, model, more]) => {
    const response = await fetch(
      `${process.env['COMFY_ROUTER_BASE_URL']}/v2/models/local/${model}`,
      {
        method: 'POST',
        headers: { 'X-API-Key': keys[key] ?? '', 'Content-Type': 'application/json' },
        body: JSON.stringify({ seconds: 0, echo: 1, ...more }),
      },
    );
    const body: unknown = await response.json();
    if (response.ok) return 'none';
    const throwing = () => {
      throw toRouterError(response.status, response.headers, body);
    };
    return (await refusal(throwing)).name;
  });
  return (await Promise.all(ended)).sort();
}

/** Keys that are refused, and none at all. */
async function refusedKeys() {
  const seen: { [name: string]: readonly string[] } = {};
  const inputs = { unknown: [{}], forbidden: [{}], disabled: [{}], poor: [{ price_cents: 5 }] };
  const twice = { rare: [{}, {}], alone: [{ seconds: 1 }, { seconds: 1 }] };
  for (const [name, each] of Object.entries({ ...inputs, ...twice })) {
    config({ credentials: keys[name] ?? '' });
    const ended = await Promise.all(
      each.map((more) =>
        refusal(() => run('local/delay', { seconds: 0, echo: 1, ...more }, { retry: false })),
      ),
    );
    seen[name] = ended.map((end) => end.name).sort();
  }
  config({ credentials: undefined } as unknown as sdk.ComfyConfig);
  seen['none'] = [(await refusal(() => run('local/digest', { text: 'x' }, { retry: false }))).name];
  return seen;
}

const seen = {
  assets: await assets(),
  jobs: await jobs(),
  events: await events(),
  refusals: await refusals(),
  cancelling: await cancelling(),
  models: await models(),
  keys: await refusedKeys(),
  routerErrors: await routerErrors(),
  ownFetch: calls > 10,
};
console.log(JSON.stringify({ ...seen, surface: surface(), used: usedNames() }));
