import { randomUUID } from 'node:crypto';
import { unlink, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hashOf } from '../../lib/hash.ts';
import { STORAGE_UNAVAILABLE_CODE, isStorageUnavailable } from '../../lib/storage-errors.ts';
import { Cancelled, NodeFailure, type SavedFile } from '../../nodes/node.ts';
import type { JobEvent, SpooledFile } from '../../protocol/job-api.ts';
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

type Preview = Extract<JobEvent, { event: 'preview' }>['data'];

export type CallContextOptions = {
  readonly files: ReadableFiles;
  readonly stopFlag: Int32Array;
  readonly meter: MemoryMeter;
  /** The number of characters of text that the nodes of the job may still show. */
  readonly textBudget: { left: number };
  /** The workflow that saved files contain. */
  readonly metadata: {
    readonly promptText: string | null;
    readonly extraPngInfo: JsonObject | null;
  };
  /** The declared types of the outputs that are linked to the node's inputs. */
  readonly inputTypes: { readonly [input: string]: string };
  readonly ask: AskMainThread;
  readonly post: (message: FromWorker) => void;
  readonly spoolDir: string;
};

/** Creates the operations that node `nodeId` may call while it runs. */
export function createCallContext(nodeId: string, deps: CallContextOptions): CallContext {
  const saved: StoredOutput[] = [];
  let pendingPreview: Omit<Preview, 'node_id' | 'x_with_step'> | undefined;
  const { post } = deps;
  const isStepDue = createStepPace();
  /** True when a picture for the socket was saved, which belongs to the next step. */
  let hasSentPicture = false;
  const check = (): void => {
    if (Atomics.load(deps.stopFlag, 0) !== 0) throw new Cancelled('the job is being stopped');
  };
  /** Sends a preview with its step, or alone when the next preview comes first. */
  const sendPendingPreview = (withStep: { readonly x_with_step?: true }): void => {
    if (!pendingPreview) return;
    const data = { node_id: nodeId, ...pendingPreview, ...withStep };
    pendingPreview = undefined;
    post({ type: 'preview', data });
  };
  return {
    nodeId,
    meter: deps.meter,
    saved,
    ...deps.metadata,
    inputTypes: deps.inputTypes,
    check,
    progress(step, steps) {
      check();
      const hasPicture = pendingPreview !== undefined || hasSentPicture;
      hasSentPicture = false;
      if (!isStepDue({ step, steps, hasPicture })) return;
      sendPendingPreview({ x_with_step: true });
      post({ type: 'step', nodeId, step, steps });
    },
    preview(bytes, contentType, kind = 'own') {
      check();
      sendPendingPreview({});
      pendingPreview = {
        content_type: contentType,
        bytes: Uint8Array.from(bytes),
        ...(kind === 'own' ? { x_own: true } : { x_sampler: true }),
      };
    },
    flush: () => sendPendingPreview({}),
    text(text) {
      check();
      post({ type: 'text', nodeId, text });
    },
    reserve(bytes) {
      check();
      deps.meter.reserve(bytes);
    },
    reserveShown(chars) {
      check();
      const granted = Math.min(chars, deps.textBudget.left);
      deps.textBudget.left -= granted;
      return granted;
    },
    async readFile(value) {
      check();
      return await readStored(value, deps);
    },
    async save(file) {
      check();
      const output = await store(nodeId, file, deps);
      saved.push(output);
      hasSentPicture ||= file.websocket === true;
      return { x_asset: output.id };
    },
  };
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
