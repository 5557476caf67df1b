import type { JsonObject } from '../../protocol/json.ts';
import type { ValidationDetail } from '../../protocol/router.ts';
import type { ModelDef, ModelOutcome } from '../model-def.ts';

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
export type ThreadModel = Pick<ModelDef, 'model' | 'title' | 'description' | 'output'> & {
  readonly input: JsonObject;
  /** The input fields that hold a file: base64, a `data:` URL, or the id of an asset. */
  readonly files?: readonly string[];
  readonly compute: (input: JsonObject, files: Files) => Promise<ModelProduct>;
};

/** A task for a worker thread. Files that came as assets are beside the input. */
export type Task = { readonly model: string; readonly input: JsonObject; readonly files: Files };

/** The result of a task. The caller stores a file only when it becomes an asset. */
export type TaskEnd =
  | Exclude<ModelOutcome, { kind: 'failed' }>
  | (ModelProduct & { readonly kind: 'file' });

/** Thrown for an input that fits its schema but that the model cannot process. */
export class InputError extends Error {
  override readonly name = 'InputError';
  readonly detail: ValidationDetail;
  constructor(
    field: string,
    fault: { readonly type: string; readonly msg: string; readonly ctx?: JsonObject },
  ) {
    super(fault.msg);
    this.detail = { loc: ['body', field], ...fault };
  }
}
