import type { JsonObject } from '../protocol/json.ts';
import type { NodeUi } from '../protocol/v2.ts';

/**
 * A batch of pictures or masks in float32 from 0 to 1, in the order batch × height × width ×
 * channels. A mask has one channel.
 */
export type Pixels = {
  readonly kind: 'image' | 'mask';
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  readonly data: Float32Array;
};

/** A region of a picture, in pixels. */
export type BoundingBox = {
  readonly kind?: never;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
};

/** A value on a link. An INT is a number if a double holds it exactly, otherwise a bigint. */
export type Value = Pixels | BoundingBox | number | bigint | string | boolean | null;

/** The evaluated inputs of one call, by name. An omitted optional input is absent. */
export type Inputs = { readonly [name: string]: Value };

/**
 * v1's own declaration of an input: `[type]` or `[type, options]`. A legacy combo has its options
 * in place of the type. Written exactly as `/object_info` shows it.
 */
export type InputSpec =
  | readonly [string | readonly string[]]
  | readonly [string | readonly string[], JsonObject];

export type OutputSpec = {
  readonly type: string;
  /** Default: the type. */
  readonly name?: string;
  /** The template of an output whose type is that of the inputs with the same template. */
  readonly matchType?: string;
};

/** A file name without its folder: `<start><five digits><end>`. The engine fills in the number. */
export type NumberedName = {
  /** Files of one series have different numbers. */
  readonly series: string;
  /**
   * The series, with the placeholders of one picture filled in. The number is above those of all
   * files whose names begin with this text.
   */
  readonly start: string;
  readonly end: string;
};

/** A file that a node made. The worker writes it, and the engine makes it an asset of the job. */
export type SavedFile = {
  readonly bytes: Uint8Array;
  readonly name: NumberedName;
  readonly subfolder: string;
  readonly contentType: string;
  readonly temp: boolean;
  /** True when it is sent over the socket only (SaveImageWebsocket). */
  readonly websocket?: boolean;
};

/** The operations of a running node. Every method throws `Cancelled` when the job is cancelled. */
export type NodeContext = {
  readonly nodeId: string;
  /**
   * The declared type of the output behind each linked input: it tells FLOAT 3.0 from INT 3.
   * Literals are absent.
   */
  readonly inputTypes?: { readonly [name: string]: string };
  /** Throws if the job is cancelled. Call it often: between steps, rows and frames. */
  check(): void;
  progress(step: number, steps: number): void;
  /**
   * Sends a picture of the work so far, which belongs to the next `progress` call. Settings apply
   * to the previews of a sampler, but not to those that a node sends itself.
   */
  preview(bytes: Uint8Array, contentType: string, kind?: 'own' | 'sampler'): void;
  /** Sends v1's binary TEXT frame. */
  text(text: string): void;
  /**
   * Reserves memory for pixels or text within the job's limit. Throws `OutOfMemory`. Tensors from
   * `tensor.ts` reserve it themselves.
   */
  reserve(bytes: number): void;
  /**
   * Reserves characters of the text that all nodes of a job may show. Returns how many are granted.
   */
  reserveShown(chars: number): number;
  /** Reads the bytes of an input file. `value` is the workflow's input after asset resolution. */
  readFile(value: string): Promise<Uint8Array>;
  /**
   * Makes a file an output of this node, in the order of the calls. Returns the item for `ui`:
   * `{x_asset: id}`.
   */
  save(file: SavedFile): Promise<JsonObject>;
  /**
   * The whole prompt as JSON text for saved files, including `is_changed` entries; null when this
   * is switched off.
   */
  readonly promptText: string | null;
  readonly extraPngInfo: JsonObject | null;
};

export type NodeResult = {
  /** One value for each declared output; an array if the output is a list. */
  readonly outputs: readonly Value[];
  readonly ui?: NodeUi;
};

/** One node class, with v1's names. */
export type NodeDef = {
  readonly name: string;
  /** Set when it differs from `name`. */
  readonly displayName?: string | null;
  readonly description?: string;
  readonly category: string;
  readonly pythonModule: string;
  /** The style of v1's declaration in which `/object_info` shows the class. Default: `legacy`. */
  readonly style?: 'legacy' | 'v3';
  readonly required: { readonly [name: string]: InputSpec };
  readonly optional?: { readonly [name: string]: InputSpec };
  /** Legacy: `{"prompt": "PROMPT"}`. v3: the same, shown as arrays of one item. */
  readonly hidden?: { readonly [name: string]: string };
  readonly outputs: readonly OutputSpec[];
  readonly outputNode?: boolean;
  readonly deprecated?: boolean;
  readonly experimental?: boolean;
  /** True when front ends keep what the node shows although it is no output node. */
  readonly hasIntermediateOutput?: boolean;
  /** True when it is never cached (v1's IS_CHANGED returns NaN). */
  readonly alwaysRuns?: boolean;
  /**
   * The inputs that name a file. The bytes of these files are part of the cache key and of
   * `is_changed`.
   */
  readonly fileInputs?: readonly string[];
  /**
   * Returns the lazy inputs that the node needs, by the values of the others. Nodes that are linked
   * to no needed input do not run.
   */
  neededInputs?(inputs: Inputs): readonly string[];
  run(inputs: Inputs, context: NodeContext): Promise<NodeResult> | NodeResult;
};

/** A failure of the node itself. `exceptionType` is the class name for v1 clients. */
export class NodeFailure extends Error {
  override readonly name = 'NodeFailure';
  readonly exceptionType: string;
  constructor(exceptionType: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exceptionType = exceptionType;
  }
}

/** Ends a node with an exception of this Python class. */
export function fail(exceptionType: string, message: string): never {
  throw new NodeFailure(exceptionType, message);
}

export class Cancelled extends Error {
  override readonly name = 'Cancelled';
}

export class OutOfMemory extends Error {
  override readonly name = 'OutOfMemory';
}

/**
 * The bytes that a character counts in the job's memory. V8 stores Latin-1 texts in half of that.
 */
export const BYTES_PER_CHAR = 2;
