import { randomUUID } from 'node:crypto';
import { unlink, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf } from '../../lib/hash.ts';
import { STORAGE_UNAVAILABLE_CODE, isStorageUnavailable } from '../../lib/storage-errors.ts';
import { Cancelled, type NodeContext, NodeFailure, type SavedFile } from '../../nodes/node.ts';
import type { SpooledFile, JobEventData } from '../../protocol/job-api.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { CallContext } from './execute-plan.ts';
import { createStepPace } from './step-pace.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type {
  AskMainThread,
  FromWorker,
  ReadableFiles,
  StoredOutput,
} from '../jobs/worker-protocol.ts';

type Preview = JobEventData['preview'];

export type CallContextOptions = {
  readonly files: ReadableFiles;
  readonly stopFlag: Int32Array;
  readonly meter: MemoryMeter;
  /** The number of characters of text that the nodes of the job may still show. */
  readonly textBudget: { left: number };
  /** The workflow that saved files contain. */
  readonly metadata: Pick<NodeContext, 'promptText' | 'extraPngInfo'>;
  readonly ask: AskMainThread;
  readonly post: (message: FromWorker) => void;
  readonly spoolDir: string;
};

/** The operations that a node may call while it runs. */
export class NodeCallContext implements CallContext {
  readonly nodeId: string;
  readonly meter: MemoryMeter;
  readonly inputTypes: { readonly [input: string]: string };
  readonly promptText: string | null;
  readonly extraPngInfo: JsonObject | null;
  readonly saved: StoredOutput[] = [];
  readonly #options: CallContextOptions;
  readonly #isStepDue = createStepPace();
  #pendingPreview: Omit<Preview, 'node_id' | 'x_with_step'> | undefined;
  /** True when a picture for the socket was saved, which belongs to the next step. */
  #hasSentPicture = false;

  /** `inputTypes`: the declared types of the outputs that are linked to the node's inputs. */
  constructor(
    nodeId: string,
    inputTypes: { readonly [input: string]: string },
    options: CallContextOptions,
  ) {
    this.nodeId = nodeId;
    this.meter = options.meter;
    this.inputTypes = inputTypes;
    this.promptText = options.metadata.promptText;
    this.extraPngInfo = options.metadata.extraPngInfo;
    this.#options = options;
  }

  check(): void {
    if (Atomics.load(this.#options.stopFlag, 0) !== 0)
      throw new Cancelled('the job is being stopped');
  }

  progress(step: number, steps: number): void {
    this.check();
    const hasPicture = this.#pendingPreview !== undefined || this.#hasSentPicture;
    this.#hasSentPicture = false;
    if (!this.#isStepDue({ step, steps, hasPicture })) return;
    this.#sendPendingPreview({ x_with_step: true });
    this.#options.post({ type: 'step', nodeId: this.nodeId, step, steps });
  }

  preview(bytes: Uint8Array, contentType: string, kind: 'own' | 'sampler' = 'own'): void {
    this.check();
    this.#sendPendingPreview({});
    this.#pendingPreview = {
      content_type: contentType,
      bytes: Uint8Array.from(bytes),
      ...(kind === 'own' ? { x_own: true } : { x_sampler: true }),
    };
  }

  flush(): void {
    this.#sendPendingPreview({});
  }

  text(text: string): void {
    this.check();
    this.#options.post({ type: 'text', nodeId: this.nodeId, text });
  }

  reserve(bytes: number): void {
    this.check();
    this.meter.reserve(bytes);
  }

  reserveShown(chars: number): number {
    this.check();
    const { textBudget } = this.#options;
    const granted = Math.min(chars, textBudget.left);
    textBudget.left -= granted;
    return granted;
  }

  async readFile(value: string): Promise<Uint8Array> {
    this.check();
    return await readStored(value, this.#options);
  }

  async save(file: SavedFile): Promise<JsonObject> {
    this.check();
    const output = await store(this.nodeId, file, this.#options);
    this.saved.push(output);
    this.#hasSentPicture ||= file.websocket === true;
    return { x_asset: output.id };
  }

  /** Sends a preview with its step, or alone when the next preview comes first. */
  #sendPendingPreview(withStep: { readonly x_with_step?: true }): void {
    if (!this.#pendingPreview) return;
    const data = { node_id: this.nodeId, ...this.#pendingPreview, ...withStep };
    this.#pendingPreview = undefined;
    this.#options.post({ type: 'preview', data });
  }
}

async function readStored(name: string, { files, ask }: CallContextOptions): Promise<Uint8Array> {
  const hash = files.get(name);
  if (hash === undefined) throw new Error(`${name} is not a file of this workflow`);
  try {
    const bytes = await ask('read', hash);
    if (bytes) return bytes;
  } catch (cause) {
    if (isStorageUnavailable(cause))
      throw new NodeFailure('OSError', `${name} could not be read: ${STORAGE_UNAVAILABLE_CODE}`, {
        cause,
      });
  }
  throw new NodeFailure('FileNotFoundError', `the bytes of ${name} are gone`);
}

async function store(
  nodeId: string,
  { bytes, ...named }: SavedFile,
  { ask, spoolDir }: Pick<CallContextOptions, 'ask' | 'spoolDir'>,
): Promise<StoredOutput> {
  try {
    return await ask('save', nodeId, { ...named, ...spool(bytes, spoolDir) });
  } catch (cause) {
    const { start, end } = named.name;
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new NodeFailure('OSError', `${start}*${end} could not be written: ${code}`, { cause });
  }
}

/** This thread runs one job and may wait for the disk; the main thread serves all callers. */
function spool(bytes: Uint8Array, dir: string): SpooledFile {
  const file = { path: join(dir, randomUUID()), sizeBytes: bytes.byteLength, hash: hashOf(bytes) };
  try {
    writeFileSync(file.path, bytes, { flag: 'wx' });
  } catch (error) {
    // A file that cannot be removed now is removed at a later start. The first error matters more.
    unlink(file.path, () => {});
    throw error;
  }
  return file;
}
