import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Presets, SingleBar } from 'cli-progress';
import { WebSocket } from 'ws';

/** Runs the main job once, as a v1 client would: upload, socket, prompt, previews, result. */
const ROOT = new URL('../', import.meta.url);
const OUT = new URL('demo-output/', ROOT);
const IMAGE = new URL('fixtures/demo/evening-hills.jpg', ROOT);
const WORKFLOW = new URL('fixtures/workflows/demo.json', ROOT);
const CLIENT_ID = 'holdover-demo';
const PREVIEW_IMAGE_OFFSET = 8;

type Answered = { msg: string; method: string; url: string; status: number; v2: string[] };
type Started = { readonly url: string; readonly answered: Answered[]; stop(): Promise<void> };
type FileRef = { filename: string; subfolder: string; type: string };

await mkdir(OUT, { recursive: true });
const server = await start(process.argv.slice(2));
try {
  console.log(`Holdover is running at ${server.url}\n`);
  const name = await upload(server.url);
  console.log(`Uploaded ${name}`);
  const { files, preview } = await run(server.url);
  for (const file of files) await download(server.url, file);
  if (preview) {
    await writeFile(new URL('last-preview.jpg', OUT), preview);
    console.log(`Saved ${fileURLToPath(new URL('last-preview.jpg', OUT))}`);
  }
  if (files.length === 0) throw new Error('the workflow saved nothing');
} finally {
  await server.stop();
}
console.log('\nWhat each v1 call became in v2:');
for (const { method, url, v2 } of server.answered) {
  const path = url.split('?', 1)[0] ?? url;
  console.log(
    `  ${`${method} ${path}`.padEnd(22)} → ${v2.join(', ') || '(answered by Holdover itself)'}`,
  );
}

/** A real server process on a free port; its log tells which v2 calls it made. */
async function start(args: readonly string[]): Promise<Started> {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-demo-'));
  const main = fileURLToPath(new URL('main.js', import.meta.url));
  const child = spawn(process.execPath, [main, '--port', '0', '--data-dir', dataDir, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOLDOVER_LOG_LEVEL: 'info' },
  });
  const answered: Answered[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!line.startsWith('{')) return console.error(line);
    const entry = JSON.parse(line) as Answered;
    if (entry.msg === 'request answered') answered.push(entry);
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server did not start (exit code ${code})`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /^To see the GUI go to: (\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    });
  });
  return {
    url,
    answered,
    async stop() {
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function upload(url: string): Promise<string> {
  const form = new FormData();
  form.append(
    'image',
    new Blob([await readFile(IMAGE)], { type: 'image/jpeg' }),
    'evening-hills.jpg',
  );
  form.append('overwrite', 'true');
  const response = await fetch(`${url}/upload/image`, { method: 'POST', body: form });
  if (!response.ok) throw new Error(`upload answered ${response.status}`);
  return ((await response.json()) as { name: string }).name;
}

/** Posts the prompt and follows it to v1's last word, `executing` with node null. */
async function run(url: string): Promise<{ files: FileRef[]; preview: Buffer | undefined }> {
  const workflow = await readFile(WORKFLOW, 'utf8');
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws?clientId=${CLIENT_ID}`);
  const frames = listen(socket, JSON.parse(workflow) as Workflow);
  await once(socket, 'open');
  // The seed is 2^64-1: the workflow is spliced in as text, so that no digit is lost on the way.
  const body = `{"client_id":"${CLIENT_ID}","prompt":${workflow}}`;
  const response = await fetch(`${url}/prompt`, { method: 'POST', body });
  if (response.status !== 200)
    throw new Error(`POST /prompt answered ${response.status}: ${await response.text()}`);
  const { prompt_id: promptId } = (await response.json()) as { prompt_id: string };
  console.log(`Prompt ${promptId} accepted\n`);
  await frames.done;
  socket.close();
  const history = (await (await fetch(`${url}/history/${promptId}`)).json()) as {
    [id: string]: {
      outputs: { [node: string]: { images?: FileRef[] } };
      status: { status_str: string };
    };
  };
  const entry = history[promptId];
  if (entry?.status.status_str !== 'success')
    throw new Error(`the run failed: ${JSON.stringify(entry?.status)}`);
  const files = Object.values(entry.outputs).flatMap(({ images = [] }) => images);
  return { files, preview: frames.preview() };
}

type Workflow = { [id: string]: { class_type: string } };
type Message = {
  type: string;
  data: { node?: string | null; value?: number; max?: number; exception_message?: string };
};

function listen(
  socket: WebSocket,
  workflow: Workflow,
): { done: Promise<void>; preview(): Buffer | undefined } {
  const progress = createProgress(workflow);
  let preview: Buffer | undefined;
  const done = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (bytes: Buffer, isBinary) => {
      if (isBinary) return void (preview = bytes.subarray(PREVIEW_IMAGE_OFFSET));
      const message = JSON.parse(bytes.toString()) as Message;
      progress(message);
      if (message.type === 'executing' && message.data.node === null) resolve();
    });
  });
  return { done, preview: () => preview };
}

/** One bar for the whole run; a node counts for one, a node with steps moves it step by step. */
function createProgress(workflow: Workflow): (message: Message) => void {
  const total = Object.keys(workflow).length;
  const bar = new SingleBar(
    {
      format: '  {bar} {percentage}%  {label}',
      noTTYOutput: true,
      notTTYSchedule: 500,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  let started = 0;
  return ({ type, data }) => {
    if (type === 'execution_start') bar.start(total, 0, { label: 'started' });
    if (type === 'executing' && data.node) {
      bar.update(started++, { label: workflow[data.node]?.class_type });
    } else if (type === 'progress') {
      const label = `${workflow[data.node ?? '']?.class_type} ${data.value}/${data.max}`;
      bar.update(started - 1 + (data.value ?? 0) / (data.max ?? 1), { label });
    } else if (type === 'execution_success') {
      bar.update(total, { label: 'done' });
    } else if (type === 'executing') {
      bar.stop();
    }
    if (type === 'execution_error') console.error(`\n${data.exception_message}`);
  };
}

async function download(url: string, file: FileRef): Promise<void> {
  const query = new URLSearchParams(file);
  const response = await fetch(`${url}/view?${query.toString()}`);
  if (!response.ok) throw new Error(`/view answered ${response.status}`);
  const target = new URL(file.filename, OUT);
  await writeFile(target, Buffer.from(await response.arrayBuffer()));
  console.log(`Saved ${fileURLToPath(target)}`);
}
