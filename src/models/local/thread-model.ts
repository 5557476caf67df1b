import type { JsonObject } from '../../protocol/json.ts';
import type { ValidationDetail } from '../../protocol/router.ts';
import type { English } from './english.ts';

/** Files named by an input, by field. */
export type Files = { readonly [field: string]: Uint8Array };

/** Result of a computation: facts, or a file with its facts. */
export type ModelProduct =
  | { readonly kind: 'json'; readonly value: JsonObject }
  | {
      readonly kind: 'file';
      readonly bytes: Uint8Array;
      readonly contentType: string;
      readonly facts: JsonObject;
    };

/** State of a worker thread between its tasks. */
type ThreadContext = { readonly readEnglish: English };

/** A model whose whole work is done on a worker thread. */
export type ThreadModel = {
  readonly model: string;
  readonly title: string;
  readonly description: string;
  readonly input: JsonObject;
  /** Content type → JSON Schema of what it answers. */
  readonly output: { readonly [contentType: string]: JsonObject };
  /** Input fields that carry a file: base64, a `data:` URL, or the id of an asset. */
  readonly files?: readonly string[];
  compute(input: JsonObject, files: Files, context: ThreadContext): Promise<ModelProduct>;
};

/** An order to a worker thread; files that came as assets are beside the input. */
export type Task = { readonly model: string; readonly input: JsonObject; readonly files: Files };

/** Result of a task; a file is left to the caller only when it becomes an asset. */
export type TaskEnd =
  | { readonly kind: 'answer'; readonly contentType: string; readonly body: Uint8Array }
  | (ModelProduct & { readonly kind: 'file' })
  | { readonly kind: 'invalid'; readonly detail: readonly ValidationDetail[] };

/** The input fits its schema, but not what the model can work on. */
export class InputError extends Error {
  override readonly name = 'InputFault';
  readonly detail: ValidationDetail;
  constructor(
    field: string,
    fault: { readonly type: string; readonly msg: string; readonly ctx?: JsonObject },
  ) {
    super(fault.msg);
    this.detail = { loc: ['body', field], ...fault };
  }
}
