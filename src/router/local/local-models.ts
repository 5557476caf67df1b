import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { extension } from 'mime-types';
import { spoolBytes } from '../../lib/spool.ts';
import type { AssetCalls } from '../../protocol/job-api.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { Bucket } from '../../protocol/router.ts';
import { type ModelCall, type ModelDef, type ModelOutcome, answerJson } from '../model-def.ts';
import type { Files, ModelProduct, ThreadModel } from './thread-model.ts';
import { THREAD_MODELS } from './thread-models.ts';
import type { ModelThreads } from './threads.ts';
import { choice, inputSchema, integer } from './file-schema.ts';

export type LocalModelOptions = {
  /** The job service that reads and stores the assets of callers. */
  readonly jobs: AssetCalls;
  readonly threads: ModelThreads;
  readonly spoolDir: string;
  readonly maxFileBytes: number;
};

const ASSET_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The models that run on this machine, under the provider `local`. */
export function localModels(options: LocalModelOptions): readonly ModelDef[] {
  return [...THREAD_MODELS.map((model) => toModelDef(model, options)), delay, echo];
}

function toModelDef(def: ThreadModel, options: LocalModelOptions): ModelDef {
  const { files = [], compute: _, ...facts } = def;
  const { model } = facts;
  return {
    ...LOCAL,
    ...facts,
    async run(call) {
      const read = await readAssets(files, call, options);
      if ('kind' in read) return read;
      const end = await options.threads.run(
        { model, input: call.input, files: read.files },
        call.signal,
      );
      if (end === 'busy') return BUSY;
      return end.kind === 'file' ? await storeFile(model, end, call, options) : end;
    },
  };
}

/** The members that all models of this machine have in common. */
const LOCAL = { provider: 'local', billing: { charges_on_policy_rejection: 'no' } } as const;

const BUSY: ModelOutcome = {
  kind: 'failed',
  bucket: 'service_unavailable',
  detail: 'Too many calls are waiting for a processor.',
};

/** Fetches the files that the input names as assets. Assets of other users count as missing. */
async function readAssets(
  fields: readonly string[],
  { input, caller, signal }: ModelCall,
  { jobs, maxFileBytes }: LocalModelOptions,
): Promise<{ readonly files: Files } | (ModelOutcome & { readonly kind: 'invalid' })> {
  const files: { [field: string]: Uint8Array } = {};
  for (const field of fields) {
    const id = input[field];
    if (typeof id !== 'string' || !ASSET_ID.test(id)) continue;
    const loc = ['body', field];
    const content = await jobs.content(caller, id);
    if (!content.ok || content.value.kind !== 'bytes') {
      const msg = 'There is no such asset';
      return { kind: 'invalid', detail: [{ loc, msg, type: 'asset_not_found', input: id }] };
    }
    const { stream, totalBytes } = content.value;
    if (totalBytes > maxFileBytes) {
      stream.destroy();
      const ctx = { max_size: maxFileBytes };
      const msg = `The file has more than ${maxFileBytes} bytes`;
      return { kind: 'invalid', detail: [{ loc, msg, type: 'file_too_large', ctx, input: id }] };
    }
    signal.addEventListener('abort', () => stream.destroy(), { once: true });
    files[field] = Buffer.concat(await stream.toArray());
  }
  return { files };
}

/** Stores a product as an asset. Returns its id and address. */
async function storeFile(
  model: string,
  { bytes, contentType, facts }: ModelProduct & { kind: 'file' },
  { caller }: ModelCall,
  { jobs, spoolDir }: LocalModelOptions,
): Promise<ModelOutcome> {
  const file = await spoolBytes(bytes, { dir: spoolDir });
  const filePath = `router/${model}-${randomUUID()}.${extension(contentType) || 'bin'}`;
  const stored = await jobs.createAsset(caller, { file, contentType, filePath });
  if (!stored.ok) throw new Error(`the result could not be stored: ${stored.error.message}`);
  const { id, url, hash } = stored.value;
  const described = { content_type: contentType, size_bytes: bytes.length, ...facts };
  return answerJson({ image: { ...described, asset_id: id, url, hash } });
}

/** Failures of other providers, which local models never have: their details by bucket. */
const FAILURES: { readonly [bucket: string]: string } = {
  content_policy_violation: 'The input was refused, as it asked for.',
  provider_error: 'The model failed, as it was asked to.',
  provider_timeout: 'The model took too long, as it was asked to.',
};

/**
 * Waits, then returns its input: a model for tests of time-outs, retries and limits.
 * @internal
 */
export const delay: ModelDef = {
  ...LOCAL,
  model: 'delay',
  title: 'Wait',
  description:
    'Waits, then answers with what it was given, or fails as asked. For trying out time-outs, ' +
    'replays and limits; a price given here counts against the spend ceiling.',
  input: inputSchema(
    {
      seconds: {
        ...integer({ min: 0, max: 3600, default: 1 }, 'how long to wait'),
        type: 'number',
      },
      echo: { description: 'comes back in the answer' },
      outcome: choice(['answer', ...Object.keys(FAILURES)], 'how it ends'),
      price_cents: integer({ min: 0, max: 1_000_000, default: 0 }, 'what the call commits to'),
    },
    ['echo'],
  ),
  output: {
    'application/json': {
      type: 'object',
      required: ['waited_seconds'],
      properties: { waited_seconds: { type: 'number' }, echo: {} },
    },
  },
  priceCents: (input) => input.price_cents as number,
  async run({ input, body, signal }) {
    const seconds = input.seconds as number;
    await sleep(seconds * 1000, undefined, { signal });
    const outcome = input.outcome as 'answer' | Bucket;
    const detail = FAILURES[outcome];
    if (detail !== undefined) return { kind: 'failed', bucket: outcome as Bucket, detail };
    const { echo } = body as JsonObject;
    return answerJson({ waited_seconds: seconds, ...(echo !== undefined && { echo }) });
  },
};

/** Returns its input. It has no schema, like models for which none has been written. */
const echo: ModelDef = {
  ...LOCAL,
  model: 'echo',
  title: 'Echo',
  description: 'Answers with what it was given: any JSON object, as no input schema is written.',
  output: { 'application/json': { type: 'object' } },
  run: async ({ body }) => answerJson(body),
};
