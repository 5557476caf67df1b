import type { JsonObject } from '../../protocol/json.ts';
import type { ValidationDetail } from '../../protocol/router.ts';

/** The files that an input names, by field. */
export type Files = { readonly [field: string]: Uint8Array };

/** The result of a computation: facts, or a file with its facts. */
export type ModelProduct =
  | { readonly kind: 'json'; readonly value: JsonObject }
  | {
      readonly kind: 'file';
      readonly bytes: Uint8Array;
      readonly contentType: string;
      readonly facts: JsonObject;
    };

/** A model whose whole work runs on a worker thread. */
export type ThreadModel = {
  readonly model: string;
  readonly title: string;
  readonly description: string;
  readonly input: JsonObject;
  /** The JSON Schema of the answer for each content type. */
  readonly output: { readonly [contentType: string]: JsonObject };
  /** The input fields that hold a file: base64, a `data:` URL, or the id of an asset. */
  readonly files?: readonly string[];
  readonly compute: (input: JsonObject, files: Files) => Promise<ModelProduct>;
};

/** A task for a worker thread. Files that came as assets are beside the input. */
export type Task = { readonly model: string; readonly input: JsonObject; readonly files: Files };

/** The result of a task. The caller stores a file only when it becomes an asset. */
export type TaskEnd =
  | { readonly kind: 'answer'; readonly contentType: string; readonly body: Uint8Array }
  | (ModelProduct & { readonly kind: 'file' })
  | { readonly kind: 'invalid'; readonly detail: readonly ValidationDetail[] };

/** Thrown for an input that fits its schema but that the model cannot process. */
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
