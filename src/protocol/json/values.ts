import { LosslessNumber as LibraryNumber } from 'lossless-json';

/** A number as its source text. */
export class LosslessNumber extends LibraryNumber {
  toJSON(): this {
    inexact++;
    return this;
  }
}

/** The values so far that `JSON.stringify` has written in another form than their text had. */
let inexact = 0;

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

/** True when a client gave a value. Clients send null for a field that they leave out. */
export function isGiven(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null;
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

/** The prototype of the objects whose text has another order than their members. */
const IN_ORDER: object = Object.create(Object.prototype, {
  toJSON: {
    value(this: JsonObject): JsonObject {
      inexact++;
      return { ...this };
    },
  },
});

/** Returns the names of the members in the order of the text that the object was read from. */
export function namesInOrder(object: object): readonly string[] {
  const names = orders.get(object);
  if (!names) return Object.keys(object);
  const all = new Set([...names, ...Object.keys(object)]);
  return [...all].filter((name) => Object.hasOwn(object, name));
}

/** Returns the members in the order of the text that the object was read from. */
export function entriesInOrder<T>(object: { readonly [name: string]: T }): [string, T][] {
  return namesInOrder(object).map((name) => [name, object[name] as T]);
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

/**
 * Returns the text of a value, every number and the order of members as they were read. `gap`
 * indents it. The native writer takes a part of the time, so it writes what it can.
 */
export function writeJson(value: Json, gap = ''): string {
  inexact = 0;
  const native = JSON.stringify(value, null, gap) ?? 'null';
  return inexact === 0 ? native : exactText(value, '\n', gap);
}

function exactText(value: Json, newline: string, gap: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (value instanceof LosslessNumber) return value.value;
  const inner = newline + gap;
  const isList = Array.isArray(value);
  const parts = isList
    ? (value as readonly Json[]).map((item) => exactText(item, inner, gap))
    : entriesInOrder(value as JsonObject).flatMap(([name, member]) =>
        member === undefined
          ? []
          : [`${JSON.stringify(name)}:${gap && ' '}${exactText(member, inner, gap)}`],
      );
  const [open, close] = isList ? '[]' : '{}';
  if (gap === '' || parts.length === 0) return open + parts.join(',') + close;
  return open + inner + parts.join(`,${inner}`) + newline + close;
}
