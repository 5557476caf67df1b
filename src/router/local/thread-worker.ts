/** Entry of the worker threads that run models. */
import type { JsonObject } from '../../protocol/json.ts';
import {
  type Files,
  InputError,
  type ModelProduct,
  type Task,
  type TaskEnd,
} from './thread-model.ts';
import { answerJson } from '../model-def.ts';
import { THREAD_MODELS } from './thread-models.ts';

/** Runs one model. An input that it cannot process is returned as a value. */
export async function runTask({ model, input, files }: Task): Promise<TaskEnd> {
  const def = THREAD_MODELS.find((each) => each.model === model);
  if (def === undefined) throw new Error(`no model ${model}`);
  try {
    const allFiles = { ...decodeFiles(input, def.files ?? [], files), ...files };
    return toTaskEnd(await def.compute(input, allFiles), input);
  } catch (error) {
    if (error instanceof InputError) return { kind: 'invalid', detail: [error.detail] };
    throw error;
  }
}

/** Decodes the files that are inside the input. */
function decodeFiles(input: JsonObject, fields: readonly string[], assets: Files): Files {
  const decodedFiles = fields.flatMap((field) => {
    const text = input[field];
    return typeof text === 'string' && !(field in assets) ? [[field, decode(field, text)]] : [];
  });
  return Object.fromEntries(decodedFiles) as Files;
}

function decode(field: string, text: string): Uint8Array {
  const comma = text.startsWith('data:') ? text.indexOf(',') : -1;
  const isBase64 = comma < 0 ? !text.startsWith('data:') : text.slice(0, comma).endsWith(';base64');
  const base64 = text.slice(comma + 1).replaceAll(/\s+/g, '');
  if (isBase64 && isCompleteBase64(base64)) return Buffer.from(base64, 'base64');
  const msg = 'Input should be base64, a base64 data: URL, or the id of an asset';
  throw new InputError(field, { type: 'base64_decode', msg });
}

/**
 * Returns true for complete base64: four characters are three bytes, and one alone at the end is invalid.
 */
function isCompleteBase64(base64: string): boolean {
  const chars = /^[A-Za-z0-9+/_-]*(?=={0,2}$)/.exec(base64)?.[0].length;
  return chars !== undefined && chars % 4 !== 1;
}

/** Returns the result as the input requests it. This thread does not make assets. */
function toTaskEnd(product: ModelProduct, input: JsonObject): TaskEnd {
  if (product.kind === 'json') return answerJson(product.value);
  const { bytes, contentType, facts } = product;
  if (input.output === 'binary') return { kind: 'answer', contentType, body: bytes };
  if (input.output === 'asset') return product;
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return answerJson({
    image: { content_type: contentType, size_bytes: bytes.length, ...facts, base64 },
  });
}
