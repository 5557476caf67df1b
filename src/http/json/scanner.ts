import {
  type Cut,
  type JsonLimits,
  OPEN_LIST,
  OPEN_OBJECT,
  PART_SIZES,
  type PartSizes,
  type Scan,
  type ScanFault,
  tooManyNodes,
  BACKSLASH,
  KINDS,
  Kind,
  QUOTE,
} from './limits.ts';

/** The bytes of a string that are checked one by one before the native search is used. */
const SCAN_BYTES = 32;
/** Shorter numbers without an exponent always fit a double. */
const MAX_SAFE_NUMBER_CHARS = 16;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** The last token, as far as it decides which token may follow. */
const Last = {
  Nothing: 0,
  OpenList: 1,
  OpenObject: 2,
  Comma: 3,
  Colon: 4,
  Value: 5,
  Name: 6,
} as const;

/** The longest member name: names cannot be read in pieces. */
const MAX_NAME_BYTES = 256 * 1024;

/**
 * Counts the values of a JSON text while its bytes arrive, checks its structure, and finds the cuts
 * that give parts which are valid JSON themselves. The parser checks numbers, words and escapes.
 */
export class JsonScanner {
  readonly #limits: JsonLimits;
  readonly #sizes: PartSizes;
  readonly #graphMember: Buffer | undefined;
  readonly #cuts: Cut[] = [];
  readonly #types: number[] = [];
  readonly #nameStarts: number[] = [];
  readonly #nameEnds: number[] = [];
  #kept = 0;
  #last: (typeof Last)[keyof typeof Last] = Last.Nothing;
  #offset = 0;
  #values = 0;
  #nodes = 0;
  #isGraph = false;
  #cutAt = { bytes: 0, values: 0 };
  #isExact = false;
  #isAfterLong = false;
  #fault: ScanFault | undefined;
  /** Start of the unfinished string, number or word; -1 when there is none. */
  #stringAt = -1;
  #isEscaped = false;
  #tokenAt = -1;
  #tokenHasExponent = false;
  #tokenIsNumber = false;
  #name: number[] = [];

  constructor(limits: JsonLimits, graphMember?: string, sizes = PART_SIZES) {
    this.#limits = limits;
    this.#sizes = sizes;
    this.#graphMember = graphMember === undefined ? undefined : Buffer.from(graphMember);
  }

  /** Scans the next bytes. After a fault all further bytes are ignored. */
  push(chunk: Uint8Array): ScanFault | undefined {
    let i = 0;
    while (i < chunk.length && this.#fault === undefined) {
      if (this.#stringAt >= 0) i = this.#string(chunk, i);
      else if (this.#tokenAt >= 0) i = this.#token(chunk, i);
      else i = this.#structure(chunk, i);
    }
    this.#offset += chunk.length;
    return this.#fault;
  }

  /** Ends the scan: the body is complete. */
  end(): Scan | ScanFault {
    if (this.#tokenAt >= 0) this.#endToken(this.#offset);
    if (this.#fault) return this.#fault;
    const isWhole = this.#last === Last.Value && this.#types.length === 0 && this.#stringAt < 0;
    if (!isWhole) return { kind: 'syntax', message: 'Unexpected end of the text' };
    return {
      cuts: this.#cuts,
      bytes: this.#offset,
      values: this.#values,
      isExact: this.#isExact,
    };
  }

  #structure(chunk: Uint8Array, start: number): number {
    let i = start;
    while (i < chunk.length && KINDS[chunk[i] ?? 0] === Kind.Blank) i++;
    if (i === chunk.length) return i;
    const byte = chunk[i] ?? 0;
    const at = this.#offset + i;
    switch (KINDS[byte] ?? Kind.Other) {
      case Kind.Quote:
        this.#beginString(at);
        break;
      case Kind.Open:
        this.#open(byte, at);
        break;
      case Kind.Close:
        this.#close(byte, at);
        break;
      case Kind.Comma:
        this.#comma(at);
        break;
      case Kind.Colon:
        if (this.#last !== Last.Name) this.#unexpected(at);
        this.#last = Last.Colon;
        break;
      default:
        if (this.#last === Last.Nothing && byte === BYTE_ORDER_MARK[at]) return i + 1;
        this.#beginToken(byte, at);
    }
    return i + 1;
  }

  #unexpected(at: number): void {
    this.#fault ??= { kind: 'syntax', message: `Unexpected character at byte ${at}` };
  }

  #tooMuch(message: string): void {
    this.#fault ??= { kind: 'too much', message };
  }

  /** Begins a value. `false`: no value may begin here. */
  #begin(at: number): void {
    const last = this.#last;
    const isFirst = last === Last.Nothing || last === Last.OpenList || last === Last.Colon;
    if (!isFirst && !(last === Last.Comma && this.#types.at(-1) === OPEN_LIST)) {
      return this.#unexpected(at);
    }
    if (++this.#values > this.#limits.maxValues) {
      this.#tooMuch(`Maximum number of JSON values ${this.#limits.maxValues} exceeded.`);
    }
  }

  #open(byte: number, at: number): void {
    this.#begin(at);
    if (byte === OPEN_OBJECT && this.#types.length === 1) this.#beginGraph();
    if (this.#types.push(byte) > this.#limits.maxDepth) {
      this.#tooMuch(`Maximum JSON depth ${this.#limits.maxDepth} exceeded.`);
    }
    this.#nameStarts.push(-1);
    this.#nameEnds.push(-1);
    this.#last = byte === OPEN_OBJECT ? Last.OpenObject : Last.OpenList;
  }

  #beginGraph(): void {
    const member = this.#graphMember;
    this.#isGraph = member !== undefined && member.equals(Buffer.from(this.#name));
    this.#nodes = 0;
  }

  #close(byte: number, at: number): void {
    const type = this.#types.pop();
    const isObject = type === OPEN_OBJECT;
    const isEmpty = this.#last === (isObject ? Last.OpenObject : Last.OpenList);
    // In ASCII, each closing bracket is two above its opening one.
    const isRight = type !== undefined && byte === type + 2;
    if (!isRight || !(isEmpty || this.#last === Last.Value)) this.#unexpected(at);
    this.#nameStarts.pop();
    this.#nameEnds.pop();
    const depth = this.#types.length;
    if (depth < this.#kept) this.#kept = depth;
    if (depth < 2) this.#isGraph = false;
    this.#last = Last.Value;
    this.#isAfterLong = false;
  }

  #comma(at: number): void {
    if (this.#last !== Last.Value || this.#types.length === 0) this.#unexpected(at);
    this.#last = Last.Comma;
    const { bytes, values } = this.#cutAt;
    const isDue = at - bytes >= this.#sizes.bytes || this.#values - values >= this.#sizes.values;
    if (isDue || this.#isAfterLong) this.#cut({ end: at, next: at + 1, isLong: false });
    this.#isAfterLong = false;
  }

  #cut(position: Pick<Cut, 'end' | 'next' | 'isLong'>): void {
    const open = this.#types.map((type, i) => ({
      type,
      nameAt: this.#nameStarts[i] ?? -1,
      nameEnd: this.#nameEnds[i] ?? -1,
    }));
    this.#cuts.push({ ...position, open, stillOpen: this.#kept, isExact: this.#isExact });
    this.#kept = open.length;
    this.#cutAt = { bytes: position.next, values: this.#values };
    this.#isExact = false;
  }

  #beginString(at: number): void {
    const last = this.#last;
    const isInObject = this.#types.at(-1) === OPEN_OBJECT;
    if (last === Last.OpenObject || (last === Last.Comma && isInObject)) {
      this.#nameStarts[this.#nameStarts.length - 1] = at;
      this.#last = Last.Name;
      this.#name = [];
      const isNode = this.#isGraph && this.#types.length === 2;
      if (isNode && ++this.#nodes > this.#limits.maxNodes)
        this.#tooMuch(tooManyNodes(this.#limits));
    } else {
      this.#begin(at);
      this.#last = Last.Value;
    }
    this.#stringAt = at;
    this.#isEscaped = false;
  }

  /** Reads on inside a string, to the end of the string or of the chunk. */
  #string(chunk: Uint8Array, start: number): number {
    let i = start;
    const isRootName = this.#last === Last.Name && this.#types.length === 1;
    let isEscaped = this.#isEscaped;
    this.#isEscaped = false;
    for (let near = i + SCAN_BYTES; i < chunk.length; i++) {
      const byte = chunk[i];
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) {
        this.#endString(this.#offset + i + 1);
        return i + 1;
      } else if (i >= near) {
        i = this.#skipToQuote(chunk, i) - 1;
        near = i + SCAN_BYTES;
        continue;
      }
      if (isRootName && this.#name.length <= 16) this.#name.push(byte ?? 0);
    }
    this.#isEscaped ||= isEscaped;
    return i;
  }

  /** Skips from an unescaped character to the next quote, or behind an escaped one. */
  #skipToQuote(chunk: Uint8Array, from: number): number {
    const found = chunk.indexOf(QUOTE, from);
    const end = found < 0 ? chunk.length : found;
    let slashes = 0;
    while (end - slashes > from && chunk[end - 1 - slashes] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return end;
    if (found >= 0) return found + 1;
    this.#isEscaped = true;
    return end;
  }

  #endString(end: number): void {
    const start = this.#stringAt;
    this.#stringAt = -1;
    if (this.#last === Last.Name) this.#nameEnds[this.#nameEnds.length - 1] = end;
    const length = end - start;
    if (this.#last === Last.Name) {
      if (length <= MAX_NAME_BYTES) return;
      this.#tooMuch(`Maximum length ${MAX_NAME_BYTES} of a member name exceeded.`);
    } else if (length > this.#sizes.longBytes) {
      this.#cut({ end: start, next: end, isLong: true });
      this.#isAfterLong = true;
    }
  }

  #beginToken(byte: number, at: number): void {
    this.#begin(at);
    this.#last = Last.Value;
    this.#tokenAt = at;
    this.#tokenIsNumber = byte === 0x2d || (byte >= 0x30 && byte <= 0x39);
    this.#tokenHasExponent = false;
  }

  #token(chunk: Uint8Array, start: number): number {
    let i = start;
    for (; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0;
      if (KINDS[byte] !== Kind.Other) {
        this.#endToken(this.#offset + i);
        return i;
      }
      if (byte === 0x65 || byte === 0x45) this.#tokenHasExponent = true;
    }
    return i;
  }

  #endToken(end: number): void {
    const isLong = end - this.#tokenAt >= MAX_SAFE_NUMBER_CHARS;
    if (this.#tokenIsNumber && (this.#tokenHasExponent || isLong)) this.#isExact = true;
    this.#tokenAt = -1;
    this.#isAfterLong = false;
  }
}
