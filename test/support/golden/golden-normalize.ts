import { type Json, LosslessNumber, isJsonObject, parseJson } from '../../../src/protocol/json.ts';
import type { Frame } from './golden-socket.ts';
import type { WsRecord } from './golden-scenario.ts';

/** Arrays that are sets on v1's side: their order says nothing. */
const SETS = new Set(['errors', 'executed', 'current_outputs', 'nodes', 'dependent_outputs']);

/** Members of which only the presence can be compared: times, stacks, what a machine is and has. */
const OPAQUE: ReadonlySet<string> = new Set([
  'timestamp',
  't',
  'create_time',
  'modified',
  'created',
  'traceback',
  'ram_total',
  'ram_free',
  'vram_total',
  'vram_free',
  'torch_vram_total',
  'torch_vram_free',
  'comfyui_version',
  'python_version',
  'pytorch_version',
]);

/** The random part of the id of an account. */
const ACCOUNT_ID = /_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** How long a run took, in a line of the log. */
const SECONDS = /in \d+\.\d\d seconds/;

/** A binary frame in words: what can be compared without its pixels. */
export type Picture = {
  readonly binary: number;
  readonly format?: string;
  readonly about?: Json;
  readonly text?: string;
};

/** JSON with ids, times, random names and set orders taken out; numbers by their value. */
export function normalJson(value: Json, key = ''): Json {
  if (value instanceof LosslessNumber) return plainNumber(value);
  if (typeof value === 'string') return value.replace(ACCOUNT_ID, '_…').replace(SECONDS, 'in …');
  if (Array.isArray(value)) return normalArray(value, key);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, normalMember(name, member)]),
  );
}

/** `_temp_xxxxx_` becomes `_temp_1_`, `_temp_2_` … in order of appearance. */
export function createTempNames(): (text: string) => string {
  const seen = new Map<string, number>();
  return (text) =>
    text.replaceAll(/_temp_([a-z]{5})_/g, (_, suffix: string) => {
      if (!seen.has(suffix)) seen.set(suffix, seen.size + 1);
      return `_temp_${seen.get(suffix)}_`;
    });
}

/** A frame of ours, in the form `recordedFrame` gives to the recorded ones. */
export function ownFrame(frame: Frame): Json {
  if (typeof frame === 'string') return normalJson(parseJson(frame));
  return pictureOf(frame) as unknown as Json;
}

export function recordedFrame(record: WsRecord): Json {
  if (record.json !== undefined) return normalJson(record.json);
  return pictureOf(Buffer.from(record.binary_hex_head ?? '', 'hex')) as unknown as Json;
}

const FORMATS: Readonly<Record<string, string>> = { ffd8ff: 'jpeg', '89504e': 'png' };
const TAGS = ['', 'jpeg', 'png'] as const;

function pictureOf(bytes: Buffer): Picture {
  const binary = bytes.readUInt32BE(0);
  const length = bytes.readUInt32BE(4);
  if (binary === 3) {
    const text = bytes.subarray(8 + length).toString();
    return { binary, about: bytes.subarray(8, 8 + length).toString(), text };
  }
  if (binary === 4) {
    const about = normalJson(parseJson(bytes.subarray(8, 8 + length).toString()));
    return { binary, about, format: formatOf(bytes.subarray(8 + length)) };
  }
  return { binary, format: `${TAGS[length]} tag, ${formatOf(bytes.subarray(8))} bytes` };
}

function formatOf(bytes: Buffer): string {
  return FORMATS[bytes.subarray(0, 3).toString('hex')] ?? 'unknown';
}

function normalMember(name: string, member: Json): Json {
  const hasContent = Array.isArray(member) ? member.length > 0 : member !== null && member !== '';
  return OPAQUE.has(name) && hasContent ? `<${name}>` : normalJson(member, name);
}

function normalArray(value: readonly Json[], key: string): Json {
  const items = value.map((item) => normalJson(item));
  if (SETS.has(key)) return items.toSorted(byText);
  if (key === 'queue_pending') return items.toSorted(byNumber);
  // Slot 4 of a queue item: the outputs to execute.
  const [number, id, graph, extra, outputs] = items;
  const isItem =
    items.length === 5 && isJsonObject(graph) && isJsonObject(extra) && Array.isArray(outputs);
  return isItem
    ? [number ?? 0, id ?? '', graph, extra, (outputs as Json[]).toSorted(byText)]
    : items;
}

function plainNumber(value: LosslessNumber): Json {
  const number = Number(value.value);
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? `int ${value.value}` : number;
}

function byText(a: Json, b: Json): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

function byNumber(a: Json, b: Json): number {
  return Number((a as Json[])[0]) - Number((b as Json[])[0]);
}
