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
