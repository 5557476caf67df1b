import { readFileSync } from 'node:fs';
import { packageUrl } from '../lib/package-url.ts';

/**
 * The exports of pixels.wat. Arguments are addresses, and counts of bytes, weights, channels or
 * pixels.
 */
type PixelCode = {
  columns(source: number, target: number, weights: number, taps: number, length: number): void;
  line(
    source: number,
    target: number,
    firsts: number,
    weights: number,
    reach: number,
    channels: number,
    width: number,
    masks: number,
  ): void;
  averages(row: number, above: number, target: number, channels: number, length: number): void;
  react(
    fed: number,
    grown: number,
    nextFed: number,
    nextGrown: number,
    stride: number,
    width: number,
    feed: number,
    kept: number,
  ): void;
};

/**
 * Vector instructions with a memory of their own, which is released after the call that opened it.
 */
export type PixelMemory = { readonly code: PixelCode; readonly bytes: Uint8Array };

/**
 * The instructions read and write in blocks of this many bytes. The last block may go beyond the
 * end.
 */
export const PIECE = 16;

const PAGE = 64 * 1024;
/** The maximum size of such a memory. */
const MAX_MEMORY_BYTES = 2 ** 31;

/** The part of WebAssembly that is used. Node's types do not declare it. */
type Wasm = {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Memory: new (size: { readonly initial: number }) => { readonly buffer: ArrayBuffer };
  readonly Instance: new (module: object, imports: object) => { readonly exports: object };
  readonly CompileError: new () => Error;
};
const { Module, Memory, Instance, CompileError } = (
  globalThis as unknown as { readonly WebAssembly: Wasm }
).WebAssembly;

let compiled: object | 'none' | undefined;

/**
 * Opens a memory of this many bytes. `undefined`: the processor has no vector instructions, or the
 * memory cannot be allocated.
 */
export const openPixels = (length: number): PixelMemory | undefined => {
  compiled ??= compile();
  if (compiled === 'none' || length > MAX_MEMORY_BYTES) return undefined;
  const memory = new Memory({ initial: Math.ceil(length / PAGE) });
  const { exports } = new Instance(compiled, { env: { memory } });
  return { code: exports as PixelCode, bytes: new Uint8Array(memory.buffer) };
};

/**
 * Returns consecutive addresses, each with space for one block before it and one behind its end.
 */
export const layOut = <Name extends string>(
  lengths: Readonly<Record<Name, number>>,
): { readonly at: Readonly<Record<Name, number>>; readonly end: number } => {
  let end = PIECE;
  const places = Object.entries<number>(lengths).map(([name, length]) => {
    const at = end;
    end = Math.ceil((at + length + 2 * PIECE) / PIECE) * PIECE;
    return [name, at];
  });
  return { at: Object.fromEntries(places) as Record<Name, number>, end };
};

/** Compiles the module. Processors without vector instructions refuse it. */
const compile = (): object | 'none' => {
  try {
    return new Module(readFileSync(packageUrl('dist/nodes/pixels.wasm')));
  } catch (error) {
    if (error instanceof CompileError) return 'none';
    throw error;
  }
};
