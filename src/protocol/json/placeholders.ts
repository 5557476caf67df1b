import { isSafeNumber } from 'lossless-json';
import { type Json, LosslessNumber, NAME_MARK, keepOrder } from './values.ts';
import type { Steps } from '../steps.ts';

/**
 * The first of the numbers that stand for others while a text is parsed. They are whole and exact.
 * Every number from here on is replaced.
 */
const FIRST_PLACEHOLDER = 2 ** 52;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** The number of members that are restored in one step. */
const MEMBERS_AT_ONCE = 1000;

type Container = unknown[] | { [name: string]: unknown };

/**
 * Stands in for the parts of a text that the native parser does not keep: numbers that do not fit a
 * double, and the places of names that are whole numbers.
 */
export class Placeholders {
  readonly #numbers: (LosslessNumber | number)[] = [];
  #last = '';
  #lastPlaceholder: string | undefined;

  #hasNames = false;

  get isEmpty(): boolean {
    return this.#numbers.length === 0 && !this.#hasNames;
  }

  /** Returns the mark that keeps a name in its place. */
  nameMark(): string {
    this.#hasNames = true;
    return NAME_MARK;
  }

  /** Returns the placeholder of a number, if it needs one. */
  forNumber(token: string): string | undefined {
    // A text may repeat a number very often.
    if (token === this.#last) return this.#lastPlaceholder;
    // A slice is a view that keeps the whole text in memory.
    this.#last = Buffer.from(token, 'latin1').toString('latin1');
    this.#lastPlaceholder = this.#addIfNeeded(this.#last);
    return this.#lastPlaceholder;
  }

  #addIfNeeded(token: string): string | undefined {
    const value = Number(token);
    const isKept = String(value) === token;
    if (isKept && Math.abs(value) < FIRST_PLACEHOLDER) return undefined;
    // The parser refuses what is no number.
    if (!NUMBER.test(token)) return undefined;
    const isExact = isKept || isSafeNumber(token);
    if (isExact && Math.abs(value) < FIRST_PLACEHOLDER) return undefined;
    this.#numbers.push(isExact ? value : new LosslessNumber(token));
    return String(FIRST_PLACEHOLDER + this.#numbers.length - 1);
  }

  /** Puts numbers and names back. The value is not shared yet, so it is changed in place. */
  *restore(root: unknown): Steps<Json> {
    // A reviver would take five times as long as the parsing.
    const holder = [root];
    const open: Container[] = [holder];
    let restored = 0;
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const members = next as { [name: string]: unknown };
      const names = this.#hasNames ? unmarkNames(members) : Object.keys(members);
      for (const name of names) {
        const member = members[name];
        if (typeof member === 'number') {
          if (member >= FIRST_PLACEHOLDER)
            members[name] = this.#numbers[member - FIRST_PLACEHOLDER];
        } else if (typeof member === 'object' && member !== null) open.push(member as Container);
        if (++restored % MEMBERS_AT_ONCE === 0) yield MEMBERS_AT_ONCE;
      }
    }
    return holder[0] as Json;
  }
}

/**
 * Removes the marks. Returns all names. A marked name comes later in the text than the same name
 * without a mark.
 */
function unmarkNames(members: { [name: string]: unknown }): readonly string[] {
  const written = Object.keys(members);
  const marked = written.filter(isMarked).map((name) => [name, members[name]] as const);
  if (marked.length === 0) return written;
  // A name without its mark may be another one with its mark.
  for (const [name] of marked) delete members[name];
  for (const [name, member] of marked) members[unmarked(name)] = member;
  keepOrder(members, written.map(unmarked));
  return Object.keys(members);
}

/** True for a name that has a mark, or must get one because a client's name looks so. */
export function isMarked(name: string): boolean {
  return name.startsWith(NAME_MARK);
}

function unmarked(name: string): string {
  return isMarked(name) ? name.slice(NAME_MARK.length) : name;
}
