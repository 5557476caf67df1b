import type { Json, JsonObject } from '../protocol/json.ts';
import type { NodeUi } from '../protocol/v2.ts';

/** A batch of pictures, float32 0..1, laid out batch × height × width × channels. */
export type ImageValue = {
  readonly kind: 'image';
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly data: Float32Array;
  /**
   * The same levels as bytes, when all of them are whole 255ths; `data` is then computed on first
   * use.
   */
  readonly bytes?: Uint8Array;
};

/** A batch of masks, float32 0..1, laid out batch × height × width. */
export type MaskValue = {
  readonly kind: 'mask';
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly data: Float32Array;
};

/** A value on a link. INT is a number while a double holds it exactly, otherwise a bigint. */
export type Value = ImageValue | MaskValue | number | bigint | string | boolean | null;

/** Evaluated inputs of one call, by name; an omitted optional input is absent. */
export type Inputs = { readonly [name: string]: Value };

/**
 * v1's own input declaration: `[type]` or `[type, options]`; a legacy combo has its options in
 * place of the type. Written exactly as `/object_info` shows it.
 */
export type InputSpec =
  | readonly [string | readonly string[]]
  | readonly [string | readonly string[], JsonObject];

export type OutputSpec = {
  readonly type: string;
  /** Defaults to the type. */
  readonly name?: string;
  readonly isList?: boolean;
};

/** A file a node made: written by the worker, adopted by the engine as an asset of the job. */
export type SavedFile = {
  readonly bytes: Uint8Array;
  /** File name without folder. */
  readonly name: string;
  readonly subfolder: string;
  readonly contentType: string;
  readonly temp: boolean;
  /** Delivered over the socket only (SaveImageWebsocket). */
  readonly websocket?: boolean;
};

/** The operations of a running node. Every method throws `Cancelled` once the job is cancelled. */
export type NodeContext = {
  readonly nodeId: string;
  /** Declared type of the output behind each linked input: distinguishes FLOAT 3.0 from INT 3. Literals are absent. */
  readonly inputTypes?: { readonly [name: string]: string };
  /** Call it often: between steps, rows, frames. */
  check(): void;
  progress(step: number, steps: number): void;
  /**
   * A picture of the work so far; belongs to the next `progress` call. The previews of a sampler are
   * a matter of settings, those a node sends by itself are not.
   */
  preview(bytes: Uint8Array, contentType: string, kind?: 'own' | 'sampler'): void;
  /** v1's binary TEXT frame. */
  text(text: string): void;
  /** Reserves pixels or text against the job's memory limit; throws `OutOfMemory`. Tensors made through `tensor.ts` do it themselves. */
  reserve(bytes: number): void;
  /**
   * Reserves characters of the text that all nodes of a job may show; returns how many of them are
   * granted.
   */
  reserveShown(chars: number): number;
  /** Bytes of an input file. `value` is what the workflow's input holds after asset resolution. */
  readFile(value: string): Promise<Uint8Array>;
  /** Commits a file as an output of this node, in call order; answers the item for `ui`: `{x_asset: id}`. */
  save(file: SavedFile): Promise<JsonObject>;
  /** Next free counter for `<prefix>_<5 digits>_` names in that folder of this user. */
  nextCounter(
    folder: { readonly temp: boolean; readonly subfolder: string },
    prefix: string,
  ): Promise<number>;
  /** The whole prompt as saved files carry it, JSON text, `is_changed` entries included; null when switched off. */
  readonly promptText: string | null;
  readonly extraPngInfo: JsonObject | null;
};

export type NodeResult = {
  /** One value per declared output; an array where the output is a list. */
  readonly outputs: readonly (Value | readonly Value[])[];
  readonly ui?: NodeUi;
};

/** One node class, with v1's own names. */
export type NodeDef = {
  readonly name: string;
  /** Where it is another one than `name`. */
  readonly displayName?: string | null;
  readonly description?: string;
  readonly category: string;
  readonly pythonModule: string;
  /** The declaration style of v1 that `/object_info` shows it in; `legacy` unless it is given. */
  readonly style?: 'legacy' | 'v3';
  readonly required: { readonly [name: string]: InputSpec };
  readonly optional?: { readonly [name: string]: InputSpec };
  /** Legacy: `{"prompt": "PROMPT"}`; v3: the same, shown as 1-arrays. */
  readonly hidden?: { readonly [name: string]: string };
  readonly outputs: readonly OutputSpec[];
  readonly outputNode?: boolean;
  readonly deprecated?: boolean;
  readonly experimental?: boolean;
  /** This node takes whole lists instead of being run once per item. */
  readonly inputIsList?: boolean;
  /** Never cached (v1's IS_CHANGED giving NaN). */
  readonly alwaysRuns?: boolean;
  /**
   * With small inputs it takes less than a millisecond, unless it reserves memory first. Its start is
   * then reported with its end.
   */
  readonly isBriefWhenSmall?: boolean;
  /** How long it may take to notice that its job is to stop, where that is less than the engine allows: then its thread is ended. */
  readonly stopGraceMs?: number;
  /** Inputs that name a file; value true when the file's bytes take part in the cache key and in `is_changed`. */
  readonly fileInputs?: readonly string[];
  /** Refuses literal inputs before the job is accepted: a reason, or `true` for v1's reasonless refusal. */
  validate?(inputs: { readonly [name: string]: Json }): string | undefined;
  run(inputs: Inputs, context: NodeContext): Promise<NodeResult> | NodeResult;
};

/** A class as `/object_info` shows it. */
export type DescribedNode = Omit<NodeDef, 'run'>;

/** A node's own failure; `exceptionType` is the name v1 clients see. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
  readonly exceptionType: string;
  constructor(exceptionType: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exceptionType = exceptionType;
  }
}

export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

export class OutOfMemory extends Error {
  override readonly name = 'OutOfMemory';
}

/** Bytes a character counts against the job's memory; V8 keeps Latin-1 texts in half of it. */
export const BYTES_PER_CHAR = 2;
