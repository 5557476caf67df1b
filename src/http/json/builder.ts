import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../../lib/event-loop.ts';
import { type Json, parseJson, setMember } from '../../protocol/json.ts';
import { type Cut, OPEN_OBJECT, type OpenContainer, type Scan } from './limits.ts';

/** Thrown when the body is not UTF-8. */
export class NotUtf8 extends Error {
  override readonly name = 'NotText';
}

/** Returns the bytes from `start` to `end`. It is called in order, for each byte once. */
export type TakeBytes = (start: number, end: number) => Buffer;

type Container = Json[] | { [name: string]: Json };

/** A long string is read in pieces of this size. */
const PIECE_BYTES = 2 * 1024 * 1024;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = 0xfeff;

/**
 * Builds a scanned text part by part and lets other work run between two parts. Numbers keep their
 * digits. Throws SyntaxError, or NotUtf8.
 */
export async function buildJson(scan: Scan, takeBytes: TakeBytes): Promise<Json> {
  const { cuts, bytes } = scan;
  if (cuts.length === 0) return parsePart(textOf(takeBytes(0, bytes)), scan);
  const joiner = new PartJoiner();
  let start = 0;
  for (const cut of cuts) {
    const part = takeBytes(start, cut.end);
    const text = textOf(part) + (cut.isLong ? '""' : '');
    joiner.add(text, cut, part.subarray.bind(part), start);
    await yieldToEventLoop();
    if (cut.isLong) joiner.replaceLast(await longText(takeBytes(cut.end, cut.next)));
    start = cut.next;
  }
  joiner.addLast(textOf(takeBytes(start, bytes)), scan);
  return joiner.root;
}

/** Joins the parts of a text. The innermost open container gets the content of the next part. */
class PartJoiner {
  root: Json = null;
  #openContainers: Container[] = [];
  #open: readonly OpenContainer[] = [];
  #lastMember: { readonly holder: Container | undefined; readonly name: string } | undefined;
  /**
   * A placeholder name for the member that continues in the next part. A client cannot have chosen
   * it.
   */
  readonly #continuation = randomUUID();

  add(text: string, cut: Cut, bytes: (start: number, end: number) => Buffer, offset: number): void {
    const name = ({ nameAt, nameEnd }: OpenContainer): string =>
      JSON.parse(textOf(bytes(nameAt - offset, nameEnd - offset))) as string;
    const { open, stillOpen } = cut;
    this.#merge(parsePart(this.#opening() + text + closingBrackets(open), cut));
    this.#openContainers.length = stillOpen;
    this.#open = open;
    while (this.#openContainers.length < open.length) {
      const holder = this.#openContainers.at(-1);
      const at = open[this.#openContainers.length - 1];
      this.#openContainers.push((holder && at ? lastOf(holder, at, name) : this.root) as Container);
    }
    const top = this.#openContainers.at(-1);
    const innermost = open.at(-1);
    const isNamed = innermost !== undefined && innermost.nameAt >= offset;
    this.#lastMember = { holder: top, name: isNamed ? name(innermost) : '' };
  }

  addLast(text: string, scan: Scan): void {
    if (this.#openContainers.length > 0) this.#merge(parsePart(this.#opening() + text, scan));
  }

  /** Sets the string that was left out at the end of the previous part. */
  replaceLast(text: string): void {
    const { holder, name = '' } = this.#lastMember ?? {};
    if (holder === undefined) this.root = text;
    else if (Array.isArray(holder)) holder[holder.length - 1] = text;
    else setMember(holder, name, text);
  }

  #merge(part: Json): void {
    if (this.#openContainers.length === 0) this.root = part;
    let value = part as Container;
    const innermost = this.#openContainers.at(-1);
    for (const target of this.#openContainers) {
      const next = Array.isArray(value) ? value[0] : value[this.#continuation];
      if (target !== innermost && !Array.isArray(value)) delete value[this.#continuation];
      moveMembers(target, value, target === innermost ? 0 : 1);
      value = next as Container;
    }
  }

  #opening(): string {
    const last = this.#open.length - 1;
    const names = this.#open.map(({ type }, i) => {
      if (type !== OPEN_OBJECT) return '[';
      return i === last ? '{' : `{"${this.#continuation}":`;
    });
    return names.join('');
  }
}

function closingBrackets(open: readonly OpenContainer[]): string {
  return open
    .map(({ type }) => (type === OPEN_OBJECT ? '}' : ']'))
    .toReversed()
    .join('');
}

function lastOf(
  holder: Container,
  at: OpenContainer,
  nameOf: (open: OpenContainer) => string,
): Json | undefined {
  return Array.isArray(holder) ? holder.at(-1) : holder[nameOf(at)];
}

/** Moves the members of an object, or the items of a list from `first` on. */
function moveMembers(target: Container, from: Container, first: 0 | 1): void {
  if (Array.isArray(target)) {
    const list = from as Json[];
    for (let i = first; i < list.length; i++) target.push(list[i] ?? null);
    return;
  }
  const members = from as { [name: string]: Json };
  for (const name of Object.keys(members)) setMember(target, name, members[name] ?? null);
}

function parsePart(text: string, { isExact }: Pick<Scan, 'isExact'>): Json {
  if (isExact) return parseJson(text);
  const isMarked = text.charCodeAt(0) === BYTE_ORDER_MARK;
  return JSON.parse(isMarked ? text.slice(1) : text) as Json;
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new NotUtf8();
  return bytes.toString('utf8');
}

/** Returns the text of a string with its quotes. */
async function longText(bytes: Buffer): Promise<string> {
  const pieces: string[] = [];
  const pieceEnd = bytes.indexOf(BACKSLASH) < 0 ? plainPieceEnd : escapedPieceEnd;
  for (let start = 1; start < bytes.length - 1;) {
    const end = Math.min(bytes.length - 1, pieceEnd(bytes, start));
    pieces.push(JSON.parse(`"${textOf(bytes.subarray(start, end))}"`) as string);
    start = end;
    await yieldToEventLoop();
  }
  return pieces.join('');
}

/** Returns the end of a piece of a string without escapes, which is not inside a character. */
function plainPieceEnd(bytes: Buffer, start: number): number {
  return characterEnd(bytes, start + PIECE_BYTES);
}

/** Returns the end of a piece, which is not inside a character or an escape. */
function escapedPieceEnd(bytes: Buffer, start: number): number {
  let end = start;
  while (end < start + PIECE_BYTES) {
    if (bytes[end] !== BACKSLASH) end++;
    else end += bytes[end + 1] === 0x75 ? 6 : 2;
  }
  return characterEnd(bytes, end);
}

function characterEnd(bytes: Buffer, at: number): number {
  let end = at;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end++;
  return end;
}
