import type { Steps } from '../steps.ts';
import { Pieces } from './pieces.ts';
import { Placeholders, isMarked } from './placeholders.ts';
import type { Json } from './values.ts';

/** The most JSON that one text may hold. The name of a member counts as a value. */
export type JsonLimits = {
  readonly maxValues: number;
  readonly maxDepth: number;
  /** The limit for the members of the graph. */
  readonly maxNodes: number;
};

type ReaderOptions = {
  readonly limits: JsonLimits;
  /** The member of the outermost object that is the graph. */
  readonly graphMember?: string | undefined;
  /** Set to read NaN, Infinity and -Infinity, which Python writes, as null. */
  readonly nonFinite?: 'null' | undefined;
};

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;

/** Longer names do not name the graph. */
const MAX_KNOWN_NAME_CHARS = 256;
/** Shorter numbers without an exponent fit a double. */
const LONG_NUMBER_CHARS = 16;
/** Digits take far more time than the characters of a text, and are read at once. */
const MAX_NUMBER_CHARS = 1024 * 1024;
/** The native parser reads so many characters in the time of a value of a step. */
const CHARS_A_VALUE = 64;

/**
 * Reads JSON while its text arrives: counts values, nesting and nodes, and puts placeholders in
 * place of what the native parser does not keep. That parser builds the value and finds the faults
 * of syntax.
 */
export class JsonReader {
  readonly #limits: JsonLimits;
  readonly #graphMember: string | undefined;
  readonly #nonFinite: string | undefined;
  readonly #placeholders = new Placeholders();
  readonly #pieces = new Pieces();
  /** The part of the current text from here on is not among the pieces. */
  #from = 0;
  #fault: string | undefined;
  #values = 0;
  #nodes = 0;
  /** The open containers, outermost first. */
  readonly #open: number[] = [];
  /** For each of them the last whole number among its names; Infinity after another name. */
  readonly #lastIndexes: number[] = [];
  /** The last bracket, comma or colon. */
  #last = 0;
  #rootName = '';
  #isGraph = false;
  #isInString = false;
  #isEscaped = false;
  /** The beginning of a name that has not arrived as a whole. */
  #heldName = '';
  /** The beginning of a number or word that has not arrived as a whole. */
  #token: string | undefined;

  constructor({ limits, graphMember, nonFinite }: ReaderOptions) {
    this.#limits = limits;
    this.#graphMember = graphMember;
    this.#nonFinite = nonFinite;
  }

  get values(): number {
    return this.#values;
  }

  /** Reads the next text. Returns the fault when a limit is exceeded; read no further then. */
  push(chunk: string): string | undefined {
    const text = this.#heldName + chunk;
    this.#heldName = '';
    this.#from = 0;
    let at = this.#token === undefined ? 0 : this.#endToken(text, 0);
    while (at < text.length && this.#fault === undefined) {
      at = this.#isInString ? this.#endString(text, at) : this.#structure(text, at);
    }
    this.#emit(text, text.length - this.#heldName.length);
    return this.#fault;
  }

  /** Builds the value. Throws SyntaxError. */
  *end(): Steps<Json> {
    if (this.#token !== undefined) this.#pieces.add(this.#replaced(this.#token));
    this.#pieces.add(this.#heldName);
    const text = this.#pieces.take();
    yield text.length / CHARS_A_VALUE;
    const value = JSON.parse(text) as Json;
    yield text.length / CHARS_A_VALUE + this.#values;
    return this.#placeholders.isEmpty ? value : yield* this.#placeholders.restore(value);
  }

  #structure(text: string, at: number): number {
    const code = text.charCodeAt(at);
    switch (code) {
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        return at + 1;
      case QUOTE:
        return this.#beginString(text, at);
      case OPEN_OBJECT:
      case 0x5b:
        this.#openContainer(code);
        break;
      case 0x7d:
      case 0x5d:
        this.#open.pop();
        this.#lastIndexes.pop();
        if (this.#open.length < 2) this.#isGraph = false;
        break;
      case 0x2c:
      case COLON:
        break;
      default:
        this.#count();
        return this.#endToken(text, at);
    }
    this.#last = code;
    return at + 1;
  }

  #count(): void {
    const { maxValues } = this.#limits;
    if (++this.#values > maxValues) {
      this.#fault ??= `Maximum number of JSON values ${maxValues} exceeded.`;
    }
  }

  #openContainer(code: number): void {
    this.#count();
    if (this.#open.length === 1) {
      this.#isGraph = this.#last === COLON && this.#rootName === this.#graphMember;
      this.#nodes = 0;
    }
    this.#lastIndexes.push(-1);
    const { maxDepth } = this.#limits;
    if (this.#open.push(code) > maxDepth) {
      this.#fault ??= `Maximum JSON depth ${maxDepth} exceeded.`;
    }
  }

  #beginString(text: string, at: number): number {
    const isName = this.#open.at(-1) === OPEN_OBJECT && this.#last !== COLON;
    this.#isInString = true;
    const end = this.#endString(text, at + 1);
    if (isName && this.#isInString && end - at < MAX_KNOWN_NAME_CHARS) {
      this.#heldName = text.slice(at);
      this.#isInString = false;
      this.#isEscaped = false;
      return end;
    }
    this.#count();
    if (isName) this.#name(text, at + 1, end - 1);
    return end;
  }

  #name(text: string, start: number, end: number): void {
    const depth = this.#open.length;
    const name = unescaped(text.slice(start, end));
    if (depth === 1) this.#rootName = name;
    if (isOutOfOrder(name, this.#lastIndexes) || isMarked(name)) {
      this.#emit(text, start);
      this.#pieces.add(this.#placeholders.nameMark());
    }
    const { maxNodes } = this.#limits;
    if (this.#isGraph && depth === 2 && ++this.#nodes > maxNodes) {
      this.#fault ??= `Maximum number of nodes ${maxNodes} exceeded.`;
    }
  }

  /** Reads on inside a string. Returns the position behind its end, or the end of the text. */
  #endString(text: string, start: number): number {
    for (let quote = text.indexOf('"', start); ; quote = text.indexOf('"', quote + 1)) {
      const end = quote < 0 ? text.length : quote;
      let slashes = 0;
      while (end - slashes > start && text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++;
      const reachesStart = end - slashes === start;
      const isEscaped = (slashes + (reachesStart && this.#isEscaped ? 1 : 0)) % 2 === 1;
      if (quote >= 0 && isEscaped) continue;
      this.#isEscaped = isEscaped;
      this.#isInString = quote < 0;
      return quote < 0 ? end : end + 1;
    }
  }

  /** Reads on in a number or word. Returns the position behind it, or the end of the text. */
  #endToken(text: string, start: number): number {
    let end = this.#token === undefined ? start + 1 : start;
    while (end < text.length && !isDelimiter(text.charCodeAt(end))) end++;
    const isLong = (this.#token?.length ?? 0) + end - start > MAX_NUMBER_CHARS;
    if (isLong && /[-\d]/.test(this.#token?.charAt(0) ?? text.charAt(start))) {
      this.#fault ??= `Maximum length of a JSON number ${MAX_NUMBER_CHARS} exceeded.`;
    } else if (end === text.length) {
      this.#emit(text, start);
      this.#token = (this.#token ?? '') + text.slice(start);
      this.#from = end;
    } else if (this.#token !== undefined || mayBeReplaced(text, start, end)) {
      const token = (this.#token ?? '') + text.slice(start, end);
      const replaced = this.#replaced(token);
      if (this.#token !== undefined || replaced !== token) {
        this.#emit(text, start);
        this.#pieces.add(replaced);
        this.#from = end;
      }
      this.#token = undefined;
    }
    return end;
  }

  #replaced(token: string): string {
    if (NON_FINITE.test(token)) return this.#nonFinite ?? token;
    return this.#placeholders.forNumber(token) ?? token;
  }

  /** Moves the current text up to `end` to the pieces. */
  #emit(text: string, end: number): void {
    this.#pieces.add(text.slice(this.#from, end));
    this.#from = end;
  }
}

function isDelimiter(code: number): boolean {
  switch (code) {
    case QUOTE:
    case 0x2c:
    case COLON:
    case 0x5b:
    case 0x5d:
    case OPEN_OBJECT:
    case 0x7d:
      return true;
    default:
      return code <= 0x20;
  }
}

const NON_FINITE = /^(NaN|-?Infinity)$/;

/** True for a number that is long, has an exponent or is not finite. */
function mayBeReplaced(text: string, start: number, end: number): boolean {
  const first = text.charCodeAt(start);
  if (first === 0x4e || first === 0x49 || text.startsWith('-I', start)) return true;
  if (first !== 0x2d && (first < 0x30 || first > 0x39)) return false;
  if (end - start >= LONG_NUMBER_CHARS) return true;
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x65 || code === 0x45) return true;
  }
  return false;
}

const INDEX = /^(0|[1-9][0-9]{0,9})$/;
/** JavaScript lists larger numbers like other names. */
const MAX_INDEX = 2 ** 32 - 2;

/** True for a whole number that JavaScript would list before an earlier name of its object. */
function isOutOfOrder(name: string, lastIndexes: number[]): boolean {
  const last = lastIndexes.length - 1;
  const number = INDEX.test(name) ? Number(name) : Infinity;
  const index = number <= MAX_INDEX ? number : Infinity;
  if (index <= (lastIndexes[last] ?? 0) && index !== Infinity) {
    lastIndexes[last] = Infinity;
    return true;
  }
  lastIndexes[last] = index;
  return false;
}

/** Returns a name as it is after its escapes are read. */
function unescaped(written: string): string {
  if (!written.includes('\\')) return written;
  try {
    return JSON.parse(`"${written}"`) as string;
  } catch {
    return written;
  }
}
