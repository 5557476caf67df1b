import { setTimeout as delay } from 'node:timers/promises';
import sharp from 'sharp';
import {
  type Acknowledged,
  type AcknowledgedJob,
  type AcknowledgedPrompt,
  sha256,
} from './client-actions.ts';
import { type Client, insist } from './client.ts';

/** The outcomes of all accepted work; the last four are failures of the servers. */
export type Account = {
  prompts: number;
  /** Prompts that were refused, or got no answer. */
  unanswered: number;
  jobs: number;
  files: number;
  /** Ended by the rule of three deaths, which is not a loss. */
  threeDeaths: number;
  cancelled: number;
  lost: number;
  doubled: number;
  neverTaken: number;
  stalled: number;
  /** One line for each failure. */
  readonly troubles: string[];
};

/** The counts of the work of the clients. */
export const FIGURES = [
  'prompts',
  'unanswered',
  'jobs',
  'files',
  'cancelled',
  'threeDeaths',
  'lost',
  'doubled',
  'neverTaken',
  'stalled',
] as const satisfies readonly Exclude<keyof Account, 'troubles'>[];

type Outcome = 'done' | 'three deaths' | 'cancelled' | 'never taken' | 'lost';

/** The longest wait for the next end of a prompt or job; after it, those left count as failures. */
const PATIENCE_MS = 180_000;
const POLL_MS = 300;
const OUTPUT_NAME = /^(.*)_\d{5}_\.png/;

export function newAccount(): Account {
  return {
    prompts: 0,
    unanswered: 0,
    jobs: 0,
    files: 0,
    threeDeaths: 0,
    cancelled: 0,
    lost: 0,
    doubled: 0,
    neverTaken: 0,
    stalled: 0,
    troubles: [],
  };
}

export function addedUp(accounts: readonly Account[]): Account {
  const sum = newAccount();
  for (const account of accounts) {
    for (const figure of FIGURES) sum[figure] += account[figure];
    sum.troubles.push(...account.troubles);
  }
  return sum;
}

/** Waits until everything is over, and adds up what became of it; `doubled`: what has been counted as such. */
export async function settle(
  account: Account,
  acknowledged: Acknowledged,
  doubled: Set<string>,
): Promise<void> {
  if (!(await isIdle(account, acknowledged))) return;
  account.unanswered += acknowledged.unanswered.length;
  for (const prompt of acknowledged.prompts) {
    account.prompts += 1;
    count(account, `prompt ${prompt.marker}`, await outcomeOf(acknowledged, prompt));
  }
  for (const job of acknowledged.jobs) {
    account.jobs += 1;
    count(account, `job ${job.marker}`, await jobOutcome(acknowledged.client, job));
  }
  await countDoubled(account, acknowledged, doubled);
  await countFiles(account, acknowledged);
}

async function isIdle(account: Account, { client }: Acknowledged): Promise<boolean> {
  let deadlineMs = Date.now() + PATIENCE_MS;
  let left: unknown[] = [];
  for (let fewest = Infinity; Date.now() < deadlineMs;) {
    const queue = (await insist(client, '/queue')).json();
    left = [...queue.queue_running, ...queue.queue_pending].map(([, id]) => id);
    if (left.length === 0) return true;
    // A slow machine takes its time, and goes on all the same.
    if (left.length < fewest) deadlineMs = Date.now() + PATIENCE_MS;
    fewest = Math.min(fewest, left.length);
    await delay(POLL_MS);
  }
  account.stalled += left.length;
  account.troubles.push(`stalled: ${client.key}: ${left.join(' ')}`);
  return false;
}

function count(
  account: Account,
  what: string,
  { outcome, why }: { outcome: Outcome; why: string },
): void {
  if (outcome === 'done') return;
  if (outcome === 'three deaths') account.threeDeaths += 1;
  else if (outcome === 'cancelled') account.cancelled += 1;
  else {
    if (outcome === 'never taken') account.neverTaken += 1;
    else account.lost += 1;
    account.troubles.push(`${outcome}: ${what}: ${why}`);
  }
}

async function outcomeOf(
  { client, mayBeCancelled }: Acknowledged,
  { promptId, marker }: AcknowledgedPrompt,
): Promise<{ outcome: Outcome; why: string }> {
  const entry = (await insist(client, `/history/${promptId}`)).json()[promptId];
  if (entry === undefined) {
    if (mayBeCancelled) return { outcome: 'cancelled', why: '' };
    return { outcome: 'lost', why: `${promptId} is not in the history` };
  }
  if (entry.status.status_str !== 'success')
    return outcomeIn(entry.status.messages, mayBeCancelled);
  const images = entry.outputs['9']?.images ?? [];
  if (images.length !== 1 || !String(images[0].filename).startsWith(`${marker}_`)) {
    return { outcome: 'lost', why: `its outputs are ${JSON.stringify(images)}` };
  }
  const picture = await insist(client, `/view?${new URLSearchParams(images[0])}`);
  if (picture.status === 200) return { outcome: 'done', why: '' };
  return { outcome: 'lost', why: `its picture is answered ${picture.status}` };
}

function outcomeIn(messages: unknown, mayBeCancelled: boolean): { outcome: Outcome; why: string } {
  const why = JSON.stringify(messages);
  if (/died 3 times while running/.test(why)) return { outcome: 'three deaths', why };
  if (/never took it/.test(why)) return { outcome: 'never taken', why };
  if (mayBeCancelled && /interrupted/.test(why)) return { outcome: 'cancelled', why };
  return { outcome: 'lost', why };
}

/** The answer to a key that was used before names no job: its label does. */
async function jobOutcome(
  client: Client,
  { jobId, marker }: AcknowledgedJob,
): Promise<{ outcome: Outcome; why: string }> {
  const jobs = await jobsOf(client, marker);
  const [job] = jobs;
  if (!job) return { outcome: 'never taken', why: `no job of ${jobId ?? 'its key'} is there` };
  if (jobs.length > 1) return { outcome: 'lost', why: `it has ${jobs.length} jobs` };
  for (const deadlineMs = Date.now() + PATIENCE_MS; Date.now() < deadlineMs;) {
    const { status, error } = (await insist(client, `/api/v2/jobs/${job.id}`)).json();
    if (status === 'succeeded') return { outcome: 'done', why: '' };
    if (/died 3 times/.test(error?.message ?? '')) return { outcome: 'three deaths', why: '' };
    if (status === 'canceled') return { outcome: 'cancelled', why: '' };
    if (status === 'failed' || status === 'expired') {
      return { outcome: 'lost', why: JSON.stringify(error) };
    }
    await delay(POLL_MS);
  }
  return { outcome: 'lost', why: `${job.id} does not end` };
}

async function jobsOf(client: Client, marker: string): Promise<readonly { id: string }[]> {
  const query = new URLSearchParams({ 'metadata[crash]': marker });
  return (await insist(client, `/api/v2/jobs?${query}`)).json().jobs;
}

/** Each of them has a name of its own for its one output: a second run would be numbered on. */
async function countDoubled(
  account: Account,
  { client }: Acknowledged,
  doubled: Set<string>,
): Promise<void> {
  const history = (await insist(client, '/history')).json() as Record<string, any>;
  const runs = Object.values(history).map(({ prompt }) => prefixIn(prompt[2]));
  const files: string[] = (await insist(client, '/internal/files/output')).json();
  const made = files.map((name) => OUTPUT_NAME.exec(name)?.[1] ?? name);
  for (const [kind, names] of [
    ['history entries', runs],
    ['outputs', made],
  ] as const) {
    for (const name of new Set(names.filter((one, at) => names.indexOf(one) !== at))) {
      const line = `doubled: ${client.key}: ${kind} of ${name}`;
      if (doubled.has(line)) continue;
      doubled.add(line);
      account.doubled += 1;
      account.troubles.push(line);
    }
  }
}

function prefixIn(graph: Record<string, { inputs: Record<string, unknown> }>): string {
  return String(graph['9']?.inputs['filename_prefix']);
}

async function countFiles(account: Account, acknowledged: Acknowledged): Promise<void> {
  const { client } = acknowledged;
  const lose = (what: string): void => {
    account.lost += 1;
    account.troubles.push(`lost: ${client.key}: ${what}`);
  };
  for (const { name, sha256: expected } of acknowledged.inputs) {
    account.files += 1;
    const { status, bytes } = await insist(client, viewOf(name));
    if (status !== 200 || sha256(bytes) !== expected) lose(`upload ${name} (${status})`);
  }
  for (const name of acknowledged.masks) {
    account.files += 1;
    const { status, bytes } = await insist(client, viewOf(name));
    const isWhole = status === 200 && (await isPicture(bytes));
    if (!isWhole) lose(`mask ${name} (${status})`);
  }
  for (const [name, { acknowledged: last, sent }] of acknowledged.userdata) {
    if (last === undefined) continue;
    account.files += 1;
    const { status, bytes } = await insist(client, `/userdata/${name}`);
    const text = status === 200 ? JSON.parse(bytes.toString()) : undefined;
    if (text !== last && !sent.includes(text)) lose(`userdata ${name}: ${text} for ${last}`);
  }
}

function viewOf(name: string): string {
  return `/view?${new URLSearchParams({ filename: name, type: 'input' })}`;
}

async function isPicture(bytes: Buffer): Promise<boolean> {
  return sharp(bytes)
    .raw()
    .toBuffer()
    .then(
      () => true,
      () => false,
    );
}
