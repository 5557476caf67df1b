import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { startServer } from '../app/server.ts';
import { type Config, parseConfig } from '../config/config.ts';
import { packageUrl } from '../lib/package-url.ts';
import { SessionRecorder } from '../migration/session-recorder.ts';
import { ALL_NODES } from '../nodes/library.ts';
import { silentLogger } from '../observability/log.ts';
import { callTable } from './trace-write.ts';

/** The output folder is in the working directory, because the package may be read-only or inside `node_modules`. */
const OUTPUT_FOLDER = join(process.cwd(), 'demo-output');
const IMAGE = packageUrl('fixtures/demo/evening-hills.jpg');
const WORKFLOW = packageUrl('fixtures/workflows/demo.json');
const CLIENT_ID = 'holdover-demo';
/** The usage report leaves out calls with this agent. */
const headers = { 'User-Agent': 'holdover-demo' };
const PREVIEW_IMAGE_OFFSET = 8;

/** The last preview, and why the run failed. */
type Seen = { preview?: Buffer; reason?: string | undefined };

type FileRef = { filename: string; subfolder: string; type: string };

/** The part of a graph in API format that the demo reads. */
type Workflow = { [id: string]: { class_type: string } };

/** The part of a text frame that the demo reads. */
type Message = {
  type: string;
  data: { node: string | null; value?: number; max?: number; exception_message?: string };
};

const BAR_WIDTH = 40;

/**
 * `npm run demo`: uploads an image and runs one workflow as a v1 client (socket, prompt, previews, result). Prints an
 * error as one sentence, and sets exit code 1.
 */
export async function demoCommand(args: readonly string[]): Promise<void> {
  try {
    await runDemo(args);
  } catch (error) {
    console.error(`\n${(error as Error).message}`);
    process.exitCode = 1;
  }
}

async function runDemo(args: readonly string[]): Promise<void> {
  await mkdir(OUTPUT_FOLDER, { recursive: true });
  const dataDir = await mkdtemp(join(tmpdir(), 'holdover-demo-'));
  try {
    const flags = ['--port', '0', '--data-dir', dataDir, ...args];
    const parsed = parseConfig(flags, process.env);
    if (parsed.kind === 'exit') throw new Error(parsed.text.trim());
    await runOnServer(parsed.config);
  } finally {
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function runOnServer(config: Config): Promise<void> {
  const sessionRecorder = new SessionRecorder();
  const options = { nodes: ALL_NODES, sessionRecorder };
  const server = await startServer(config, silentLogger(), options).catch((error: Error) => {
    throw new Error(`Holdover did not start: ${error.message}`);
  });
  try {
    console.log(`Holdover is running at ${server.url}\n`);
    const name = await upload(server.url);
    console.log(`Uploaded ${name}`);
    const { files, preview } = await runWorkflow(server.url);
    for (const file of files) await download(server.url, file);
    if (preview) await save('last-preview.jpg', preview);
    if (files.length === 0) throw new Error('The workflow ran, but saved nothing.');
    process.stdout.write(callTable((await sessionRecorder.session()).calls));
  } finally {
    await server.close();
  }
}

async function upload(url: string): Promise<string> {
  const form = new FormData();
  const picture = new Blob([await readFile(IMAGE)], { type: 'image/jpeg' });
  form.append('image', picture, 'evening-hills.jpg');
  form.append('overwrite', 'true');
  const response = await fetch(`${url}/upload/image`, { method: 'POST', body: form, headers });
  if (!response.ok) throw await refusal('picture', response);
  return ((await response.json()) as { name: string }).name;
}

/** Posts the prompt and follows it until v1's last message, `executing` with node null. */
async function runWorkflow(
  url: string,
): Promise<{ files: FileRef[]; preview: Buffer | undefined }> {
  const workflow = await readFile(WORKFLOW, 'utf8');
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/ws?clientId=${CLIENT_ID}`, {
    headers,
  });
  const ended = followFrames(socket, JSON.parse(workflow) as Workflow);
  // Another error may close the connection before `ended` is awaited.
  ended.catch(() => {});
  await once(socket, 'open');
  // The workflow is inserted as text, because JSON.parse would lose digits of its seed, 2^64-1.
  const otherFields = `"client_id":"${CLIENT_ID}","extra_data":{"preview_method":"auto"}`;
  const body = `{${otherFields},"prompt":${workflow}}`;
  const response = await fetch(`${url}/prompt`, { method: 'POST', body, headers });
  if (!response.ok) throw await refusal('workflow', response);
  const { prompt_id: promptId } = (await response.json()) as { prompt_id: string };
  console.log(`Prompt ${promptId} accepted\n`);
  const { preview, reason } = await ended;
  socket.close();
  const history = (await (await fetch(`${url}/history/${promptId}`, { headers })).json()) as {
    [id: string]: {
      outputs: { [node: string]: { images?: FileRef[] } };
      status: { status_str: string };
    };
  };
  const entry = history[promptId];
  if (entry?.status.status_str !== 'success')
    throw new Error(`The run failed: ${reason ?? JSON.stringify(entry?.status)}`);
  const files = Object.values(entry.outputs).flatMap(({ images = [] }) => images);
  return { files, preview };
}

/** Shows the progress of the run, until v1's last message. Each node counts for one; its steps count for parts of it. */
function followFrames(socket: WebSocket, workflow: Workflow): Promise<Seen> {
  const seen: Seen = {};
  const nodes = Object.keys(workflow).length;
  let begun = 0;
  return new Promise((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('Holdover ended before the run had.')));
    socket.on('message', (bytes: Buffer, isBinary) => {
      if (isBinary) return void (seen.preview = bytes.subarray(PREVIEW_IMAGE_OFFSET));
      const { type, data } = JSON.parse(bytes.toString()) as Message;
      seen.reason ??= data.exception_message;
      const label = workflow[data.node ?? '']?.class_type ?? '';
      const { value = 0, max = 1 } = data;
      if (type === 'progress') return drawBar((begun - 1 + value / max) / nodes, label);
      if (type === 'execution_success') return drawBar(1, 'done\n');
      if (type !== 'executing') return;
      if (data.node === null) resolve(seen);
      else drawBar(begun++ / nodes, label);
    });
  });
}

/** Draws over the line before on a terminal; elsewhere each is a line. */
function drawBar(share: number, label: string): void {
  const bar = '█'.repeat(Math.floor(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '░');
  const line = `  ${bar} ${Math.floor(share * 100)}%  ${label}`;
  process.stdout.write(process.stdout.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
}

async function refusal(what: string, response: Response): Promise<Error> {
  const { status } = response;
  return new Error(`The ${what} was refused with ${status}: ${await response.text()}`);
}

async function download(url: string, file: FileRef): Promise<void> {
  const query = new URLSearchParams(file);
  const response = await fetch(`${url}/view?${query.toString()}`, { headers });
  if (!response.ok) throw new Error(`GET /view of the result answered ${response.status}.`);
  await save(file.filename, Buffer.from(await response.arrayBuffer()));
}

async function save(name: string, bytes: Buffer): Promise<void> {
  const path = join(OUTPUT_FOLDER, name);
  await writeFile(path, bytes);
  console.log(`Saved ${path}`);
}
