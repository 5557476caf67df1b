import { createHash, randomBytes } from 'node:crypto';
import sharp from 'sharp';
import type { Graph } from '../../src/protocol/v2.ts';
import { flat, growing, loading } from '../support/graphs/workflows.ts';
import type { Client } from './client.ts';

/** The work one client had acknowledged, which must be there after any number of kills. */
export type Acknowledged = {
  readonly client: Client;
  readonly prompts: AcknowledgedPrompt[];
  /** Sent, and never answered: they may have been taken, once. */
  readonly unanswered: string[];
  readonly jobs: AcknowledgedJob[];
  readonly inputs: AcknowledgedFile[];
  readonly masks: string[];
  /** By name: what was answered last, and what was sent later without an answer. */
  readonly userdata: Map<
    string,
    { acknowledged: string | undefined; sent: string[]; isBusy: boolean }
  >;
  /** From then on its prompts may end by a cancel. */
  mayBeCancelled: boolean;
};

export type AcknowledgedPrompt = { readonly promptId: string; readonly marker: string };
export type AcknowledgedJob = { readonly jobId: string | undefined; readonly marker: string };
export type AcknowledgedFile = { readonly name: string; readonly sha256: string };

export function noneAcknowledged(client: Client): Acknowledged {
  return {
    client,
    prompts: [],
    unanswered: [],
    jobs: [],
    inputs: [],
    masks: [],
    userdata: new Map(),
    mayBeCancelled: false,
  };
}

export type ClientAction = (acknowledged: Acknowledged, context: ActionContext) => Promise<void>;

/** `next` numbers everything that is made, so that no two are alike. */
export type ActionContext = { readonly random: () => number; readonly next: () => number };

const RESENDS = 20;
const RESEND_MS = 300;
const SIZE = { width: 24, height: 16 } as const;

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Half are quick, the others run long enough to be hit, or read an upload. */
function graphOf({ inputs }: Acknowledged, marker: string, { random, next }: ActionContext): Graph {
  const kind = random();
  const input = inputs.at(Math.floor(random() * inputs.length));
  if (kind > 0.8 && input) return loading(input.name, marker);
  if (kind > 0.5) return growing({ seed: next(), steps: 40, prefix: marker });
  return flat({ color: next() % 0xffffff, prefix: marker });
}

const prompt: ClientAction = async (acknowledged, context) => {
  const { client } = acknowledged;
  const { random, next } = context;
  const marker = `p${next()}`;
  const body = {
    prompt: graphOf(acknowledged, marker, context),
    ...(random() < 0.5 && { client_id: `client-${client.key}` }),
    ...(random() < 0.5 && { prompt_id: `own-${marker}` }),
  };
  const answer = await client.ask('POST', '/prompt', { json: body });
  if (answer?.status === 200)
    acknowledged.prompts.push({ promptId: answer.json().prompt_id, marker });
  else acknowledged.unanswered.push(marker);
};

const upload: ClientAction = async ({ client, inputs }, { next }) => {
  const name = `in-${next()}.png`;
  const bytes = await noise();
  const form = new FormData();
  form.append('image', new Blob([new Uint8Array(bytes)]), name);
  const answer = await client.ask('POST', '/upload/image', { form });
  if (answer?.status === 200) inputs.push({ name: answer.json().name, sha256: sha256(bytes) });
};

const mask: ClientAction = async ({ client, inputs, masks }, { next }) => {
  const original = inputs.at(-1);
  if (!original) return;
  const form = new FormData();
  const bytes = await noise();
  form.append('image', new Blob([new Uint8Array(bytes)]), `mask-${next()}.png`);
  const ref = { filename: original.name, subfolder: '', type: 'input' };
  form.append('original_ref', JSON.stringify(ref));
  const answer = await client.ask('POST', '/upload/mask', { form });
  if (answer?.status === 200) masks.push(answer.json().name);
};

/** A delete of one that waits, or an interrupt of what runs. */
const cancel: ClientAction = async (acknowledged, { random }) => {
  acknowledged.mayBeCancelled = true;
  const { client, prompts } = acknowledged;
  const recent = prompts.slice(-4);
  const one = recent.at(Math.floor(random() * recent.length));
  if (random() < 0.3 || !one) await client.ask('POST', '/interrupt', { json: {} });
  else await client.ask('POST', '/queue', { json: { delete: [one.promptId] } });
};

/** As the contract has it: sent again under its key until there is an answer. */
const job: ClientAction = async ({ client, jobs }, { random, next }) => {
  const marker = `j${next()}`;
  const steps = random() < 0.3 ? 20 : 1;
  const workflow = growing({ seed: next(), steps, side: 64, prefix: marker });
  const json = { workflow, metadata: { crash: marker } };
  const headers = { 'Idempotency-Key': `key-${marker}` };
  for (let sends = 0; sends < RESENDS; sends++) {
    const answer = await client.ask('POST', '/api/v2/jobs', { json, headers });
    if (answer && answer.status < 300) {
      return void jobs.push({ jobId: answer.json().id, marker });
    }
    const code = answer?.status === 422 ? answer.json().error?.code : undefined;
    if (code === 'idempotency_key_reuse') return void jobs.push({ jobId: undefined, marker });
    // 408: the server did not read it in time, on a machine that has too much to do.
    if (answer && answer.status < 500 && ![408, 429].includes(answer.status)) {
      throw new Error(`a v2 job was answered ${answer.status}: ${answer.bytes.toString()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, RESEND_MS));
  }
};

const read: ClientAction = async ({ client }, { random }) => {
  const path = random() < 0.5 ? '/history?max_items=50' : '/queue';
  const answer = await client.ask('GET', path);
  if (answer?.status === 200) answer.json();
};

const userdata: ClientAction = async ({ client, userdata: files }, { random, next }) => {
  const name = `workflow-${Math.floor(random() * 5)}.json`;
  const text = `version ${next()}`;
  const file = files.get(name) ?? { acknowledged: undefined, sent: [], isBusy: false };
  files.set(name, file);
  // Which of two writes at a time is the last one is not for the client to say.
  if (file.isBusy) return;
  file.isBusy = true;
  file.sent.push(text);
  const answer = await client.ask('POST', `/userdata/${name}?overwrite=true`, { json: text });
  file.isBusy = false;
  if (answer?.status !== 200) return;
  file.acknowledged = text;
  file.sent.length = 0;
};

/** Act → its share of what a client does. */
export const SHARES: readonly (readonly [ClientAction, number])[] = [
  [prompt, 40],
  [upload, 12],
  [mask, 5],
  [job, 15],
  [read, 14],
  [userdata, 14],
];

/** Beside the above; of one client only, since it makes its prompts' ends uncertain. */
export const CANCELS: readonly (readonly [ClientAction, number])[] = [[cancel, 12]];

async function noise(): Promise<Buffer> {
  const raw = { ...SIZE, channels: 4 } as const;
  return sharp(randomBytes(SIZE.width * SIZE.height * 4), { raw })
    .png({ compressionLevel: 1 })
    .toBuffer();
}
