import { STORAGE_UNAVAILABLE_CODE, isStorageUnavailable } from '../../lib/storage-errors.ts';
import { Cancelled, NodeFailure, type SavedFile } from '../../nodes/node.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { CallContext } from './execute-plan.ts';
import type { MemoryMeter } from './memory-meter.ts';
import type { InputReader } from './job-files.ts';
import type { MessageBatch } from './message-batch.ts';
import type { OutputPlacer } from './place-output.ts';
import {
  type AskMainThread,
  RUN_FLAG,
  type ReadableFile,
  type StoredOutput,
  type WrittenFile,
} from '../jobs/worker-protocol.ts';

type Preview = Extract<JobEvent, { event: 'preview' }>['data'];

export type CallContextOptions = {
  readonly outputs: OutputPlacer;
  readonly inputs: InputReader;
  readonly files: ReadonlyMap<string, ReadableFile>;
  /** The flags, by the indexes of `RUN_FLAG`. */
  readonly flags: Int32Array;
  readonly meter: MemoryMeter;
  /** The number of characters of text that the nodes of the job may still show. */
  readonly textBudget: { left: number };
  readonly promptText: string | null;
  readonly extraPngInfo: JsonObject | null;
  /** The declared types of the outputs that are linked to the node's inputs. */
  readonly inputTypes: { readonly [input: string]: string };
  readonly ask: AskMainThread;
  readonly messages: MessageBatch;
};

/** Creates the operations that node `nodeId` may call while it runs. */
export function createCallContext(nodeId: string, deps: CallContextOptions): CallContext {
  const saved: StoredOutput[] = [];
  let pendingPreview: Omit<Preview, 'node_id' | 'x_with_step'> | undefined;
  const { messages } = deps;
  const check = (): void => {
    messages.flushOverdue();
    if (Atomics.load(deps.flags, RUN_FLAG.stop) !== 0)
      throw new Cancelled('the job is being stopped');
  };
  /** Sends a preview with its step, or alone when the next preview comes first. */
  const sendPendingPreview = (withStep: { readonly x_with_step?: true }): void => {
    if (!pendingPreview) return;
    const data = { node_id: nodeId, ...pendingPreview, ...withStep };
    pendingPreview = undefined;
    messages.post({ type: 'preview', data });
  };
  return {
    nodeId,
    meter: deps.meter,
    saved,
    promptText: deps.promptText,
    extraPngInfo: deps.extraPngInfo,
    inputTypes: deps.inputTypes,
    check,
    progress(step, steps) {
      check();
      sendPendingPreview({ x_with_step: true });
      messages.post({ type: 'step', nodeId, step, steps });
      messages.flush();
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
      messages.post({ type: 'text', nodeId, text });
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
      const file = deps.files.get(value);
      if (!file) throw new Error(`${value} is not a file of this workflow`);
      return await readBlob(deps.inputs, file, value);
    },
    async save(file) {
      let output: StoredOutput | null = null;
      while (output === null) {
        check();
        const written = await place(file, deps.outputs);
        output = await deps.ask({ kind: 'save', ask: { nodeId, file: written } });
      }
      saved.push(output);
      return { x_asset: output.id };
    },
    async nextCounter(folder, prefix) {
      check();
      return await deps.ask({ kind: 'counter', ask: { ...folder, prefix } });
    },
  };
}

async function readBlob(
  inputs: InputReader,
  file: ReadableFile,
  name: string,
): Promise<Uint8Array> {
  try {
    return await inputs.read(file);
  } catch (cause) {
    if (isStorageUnavailable(cause))
      throw new NodeFailure('OSError', `${name} could not be read: ${STORAGE_UNAVAILABLE_CODE}`, {
        cause,
      });
    throw new NodeFailure('FileNotFoundError', `the bytes of ${name} are gone`, { cause });
  }
}

async function place(file: SavedFile, outputs: OutputPlacer): Promise<WrittenFile> {
  const { name, subfolder, contentType, temp, websocket = false, bytes } = file;
  try {
    const hash = await outputs.place(bytes);
    return { sizeBytes: bytes.byteLength, hash, name, subfolder, contentType, temp, websocket };
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error';
    throw new NodeFailure('OSError', `${name} could not be written: ${code}`, { cause });
  }
}
