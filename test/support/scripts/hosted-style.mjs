// A small program as users of the hosted v1 API write them: key in a header, submit first, connect
// afterwards under a random client id, wait for `execution_success`, download through a redirect.
//
//   node hosted-style.mjs BASE_URL KEY WORKFLOW_FILE OUTPUT_DIR [--poll | --wait-before-connecting]

import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';

const [base, key, workflowFile, outputDir, ...flags] = process.argv.slice(2);
const withKey = { 'X-API-Key': key };
const KINDS = ['images', 'video', 'audio'];

async function submit(workflow) {
  const response = await fetch(`${base}/api/prompt`, {
    method: 'POST',
    headers: { ...withKey, 'Content-Type': 'application/json' },
    body: `{"prompt": ${workflow}}`,
  });
  if (!response.ok) throw new Error(`submit: ${response.status} ${await response.text()}`);
  const answer = await response.json();
  if (answer.error) throw new Error(`submit: ${JSON.stringify(answer.error)}`);
  return answer.prompt_id;
}

function listen(promptId) {
  const url = `${base.replace(/^http/, 'ws')}/ws?clientId=${randomUUID()}&token=${key}`;
  const socket = new WebSocket(url);
  const seen = { outputs: {}, nodes: [], progress: 0 };
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('timed out')), 30_000);
    socket.on('error', reject);
    socket.on('message', (data, isBinary) => {
      if (isBinary) return;
      const message = JSON.parse(Buffer.from(data).toString());
      if (message.data.prompt_id !== promptId) return;
      if (message.type === 'executing') seen.nodes.push(message.data.node);
      if (message.type === 'progress') seen.progress += 1;
      if (message.type === 'executed' && message.data.output) {
        seen.outputs[message.data.node] = message.data.output;
      }
      if (message.type === 'execution_success') resolve(seen);
      if (message.type === 'execution_error') reject(new Error(message.data.exception_message));
    });
    socket.on('close', () => clearTimeout(timer));
  }).finally(() => socket.close());
}

async function stateOf(promptId) {
  const response = await fetch(`${base}/api/job/${promptId}/status`, { headers: withKey });
  return (await response.json()).status;
}

async function poll(promptId) {
  for (let round = 0; round < 300; round += 1) {
    const state = await stateOf(promptId);
    if (state === 'success') return;
    if (['error', 'non_retryable_error', 'lost', 'cancelled'].includes(state)) {
      throw new Error(`ended as ${state}`);
    }
    await sleep(50);
  }
  throw new Error('timed out');
}

/** Until it is over, without asking for its result. */
async function untilGone(promptId) {
  for (let round = 0; round < 300; round += 1) {
    const response = await fetch(`${base}/api/queue`, { headers: withKey });
    const { queue_running: running, queue_pending: pending } = await response.json();
    if (![...running, ...pending].some(([, id]) => id === promptId)) return;
    await sleep(50);
  }
  throw new Error('timed out');
}

async function outputsOf(promptId) {
  const response = await fetch(`${base}/api/history_v2/${promptId}`, { headers: withKey });
  return (await response.json())[promptId].outputs;
}

async function download({ filename, subfolder, type }) {
  const query = new URLSearchParams({
    filename,
    subfolder: subfolder ?? '',
    type: type ?? 'output',
  });
  const answer = await fetch(`${base}/api/view?${query}`, { headers: withKey, redirect: 'manual' });
  if (answer.status !== 302) throw new Error(`download: ${answer.status} instead of 302`);
  const file = await fetch(answer.headers.get('location'));
  if (!file.ok) throw new Error(`download: ${file.status} behind the redirect`);
  await writeFile(join(outputDir, filename), Buffer.from(await file.arrayBuffer()));
  return filename;
}

async function run() {
  const promptId = await submit(await readFile(workflowFile, 'utf8'));
  const polls = flags.includes('--poll');
  if (polls) await poll(promptId);
  if (flags.includes('--wait-before-connecting')) await untilGone(promptId);
  const seen = polls ? { outputs: await outputsOf(promptId) } : await listen(promptId);
  const files = Object.values(seen.outputs).flatMap((output) =>
    KINDS.flatMap((kind) => output[kind] ?? []),
  );
  const saved = [];
  for (const file of files) saved.push(await download(file));
  return { promptId, ...seen, saved };
}

run().then(
  (outcome) => console.log(JSON.stringify(outcome)),
  (error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
