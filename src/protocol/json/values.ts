import { LosslessNumber as LibraryNumber } from 'lossless-json';

/** A number as its source text. */
export class LosslessNumber extends LibraryNumber {
  /** The numbers that `JSON.stringify` has written. */
  static written = 0;

  toJSON(): this {
    LosslessNumber.written++;
    return this;
  }
}

/** JSON with exact numbers: a number that does not fit a double is kept as its source text. */
export type Json =
  | null
  | boolean
  | number
  | string
  | LosslessNumber
  | readonly Json[]
  | { readonly [key: string]: Json };

export type JsonObject = { readonly [key: string]: Json };

/** Sets a member as JSON means it, also for the name `__proto__`. */
export function setMember<T>(holder: { [name: string]: T }, name: string, value: T): void {
  if (name !== '__proto__') holder[name] = value;
  else {
    const member = { value, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(holder, name, member);
  }
}

export function isJsonObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof LosslessNumber)
  );
}

/**
 * Stands before a name whose place in the text JavaScript would not keep: it lists whole numbers
 * first.
 */
export const NAME_MARK = '\ue000';

const orders = new WeakMap<object, readonly string[]>();
/** The mark of the text that is being written. */
let writtenMark: string | undefined;
let namesWritten = 0;

/** The prototype of the objects whose text has another order than their members. */
const IN_ORDER: object = Object.create(Object.prototype, {
  toJSON: {
    value(this: JsonObject): JsonObject {
      const mark = writtenMark;
      if (mark === undefined) return { ...this };
      const marked = entriesInOrder(this).map(([name, member]) => [mark + name, member]);
      namesWritten += marked.length;
      return Object.fromEntries(marked) as JsonObject;
    },
  },
});

/** Returns the members in the order of the text that the object was read from. */
export function entriesInOrder<T>(object: { readonly [name: string]: T }): [string, T][] {
  const names = orders.get(object);
  return names ? names.map((name) => [name, object[name] as T]) : Object.entries(object);
}

/** Builds an object that is written in the order of its entries. */
export function objectInOrder<T>(entries: readonly (readonly [string, T])[]): {
  [name: string]: T;
} {
  const object = Object.fromEntries(entries) as { [name: string]: T };
  keepOrder(
    object,
    entries.map(([name]) => name),
  );
  return object;
}

/** Makes an object be written with its names in this order. */
export function keepOrder(object: object, names: readonly string[]): void {
  const unique = [...new Set(names)];
  if (Object.keys(object).every((name, i) => name === unique[i])) return;
  orders.set(object, unique);
  Object.setPrototypeOf(object, IN_ORDER);
}

/** Runs a writer of JSON so that objects are written in the order of their text. */
export function writeInOrder(write: () => string): string {
  for (let mark = NAME_MARK; ; mark += mark) {
    const text = writeWithMark(write, mark);
    if (namesWritten === 0) return text;
    let found = 0;
    const unmarked = text.replaceAll(`"${mark}`, () => {
      found++;
      return '"';
    });
    // The counts differ when a text of the client begins with the mark.
    if (found === namesWritten) return unmarked;
  }
}

function writeWithMark(write: () => string, mark: string): string {
  writtenMark = mark;
  namesWritten = 0;
  try {
    return write();
  } finally {
    writtenMark = undefined;
  }
}
