import { fail } from '../node.ts';
import { fixed } from '../text/format-spec.ts';

/** A number as Python has it: an int has all its digits, and a bool counts as 0 or 1. */
export type PythonNumber = bigint | number | boolean;

/** Doubles of usual size have no more. */
const MAX_ROUNDED_DIGITS = 22;

/** Python has no limit; a longer int is beyond every FLOAT and takes long to compute. */
const MAX_INT_BITS = 65_536n;

const MAX_SHIFT = 10_000n;

type Operator = (a: PythonNumber, b: PythonNumber) => PythonNumber;

/** An operator on two ints, or on two floats when one of both is a float. */
const arithmetic =
  (ints: (a: bigint, b: bigint) => bigint | number, floats: (a: number, b: number) => number) =>
  (a: PythonNumber, b: PythonNumber): PythonNumber => {
    const [x, y] = [plain(a), plain(b)];
    if (typeof x === 'number' || typeof y === 'number') return floats(Number(x), Number(y));
    return bounded(ints(x, y));
  };

export const add = arithmetic(
  (a, b) => a + b,
  (a, b) => a + b,
);

export const power = arithmetic(
  (a, b) => (b < 0n ? powerOfFloats(Number(a), Number(b)) : powerOfInts(a, b)),
  powerOfFloats,
);

const divideFloats = (a: number, b: number): number => a / nonZero(b);

/** An operator on the bits of two ints. */
const bitwise = (ints: (a: bigint, b: bigint) => bigint): Operator =>
  arithmetic(ints, () => fail('TypeError', 'unsupported operand type(s): float'));

const places = (shift: bigint): bigint =>
  shift < 0n || shift > MAX_SHIFT ? fail('ValueError', `Cannot shift by ${shift}`) : shift;

export const OPERATORS: { readonly [operator: string]: Operator } = {
  '+': add,
  '-': arithmetic(
    (a, b) => a - b,
    (a, b) => a - b,
  ),
  '*': arithmetic(
    (a, b) => a * b,
    (a, b) => a * b,
  ),
  '/': (a, b) => divideFloats(Number(a), Number(b)),
  '//': arithmetic(
    (a, b) => (a - modulo(a, nonZero(b))) / b,
    (a, b) => Math.floor(divideFloats(a, b)),
  ),
  '%': arithmetic(
    (a, b) => modulo(a, nonZero(b)),
    (a, b) => {
      const rest = a % nonZero(b);
      return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
    },
  ),
  '**': power,
  '&': bitwise((a, b) => a & b),
  '|': bitwise((a, b) => a | b),
  '^': bitwise((a, b) => a ^ b),
  '<<': bitwise((a, b) => a << places(b)),
  '>>': bitwise((a, b) => a >> places(b)),
};

/** An int as a bigint, a float as a number. */
export function plain(value: PythonNumber): bigint | number {
  return typeof value === 'boolean' ? BigInt(value) : value;
}

/** The float without its fraction, as an int. */
export function truncated(value: PythonNumber): bigint {
  if (typeof value !== 'number') return BigInt(value);
  if (Number.isFinite(value)) return BigInt(Math.trunc(value));
  return fail('OverflowError', 'cannot convert float infinity to integer');
}

/** Rounds to so many decimal digits; a tie goes to the even one, as in all of Python. */
export function rounded(value: PythonNumber, digits: number): PythonNumber {
  const number = plain(value);
  if (digits < 0) {
    const int = truncated(number);
    // To a longer unit it is rounded to 0, too.
    const unitDigits = Math.min(-digits, String(int).length + 1);
    const whole = roundedTo(int, 10n ** BigInt(unitDigits));
    return typeof number === 'bigint' ? whole : Number(whole);
  }
  if (typeof number === 'bigint') return number;
  const isLong = digits > MAX_ROUNDED_DIGITS || !Number.isFinite(number);
  return isLong ? number : Number(fixed(number, digits));
}

function roundedTo(value: bigint, unit: bigint): bigint {
  const rest = modulo(value, unit);
  const floor = value - rest;
  const isUp = rest * 2n > unit || (rest * 2n === unit && (floor / unit) % 2n !== 0n);
  return isUp ? floor + unit : floor;
}

function modulo(a: bigint, b: bigint): bigint {
  const rest = a % b;
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
}

function powerOfInts(base: bigint, exponent: bigint): bigint {
  const isSmall = base >= -1n && base <= 1n;
  if (!isSmall && exponent * BigInt(base.toString(2).length) > MAX_INT_BITS) return tooLarge();
  return base ** exponent;
}

function powerOfFloats(base: number, exponent: number): number {
  if (base === 0 && exponent < 0) return nonZero(0);
  const power = base ** exponent;
  if (Number.isNaN(power)) return fail('ValueError', 'the result is a complex number');
  return power;
}

function nonZero<T extends bigint | number>(divisor: T): T {
  return Number(divisor) === 0 ? fail('ZeroDivisionError', 'division by zero') : divisor;
}

function bounded(value: bigint | number): bigint | number {
  const isLong = typeof value === 'bigint' && value.toString(16).length * 4 > MAX_INT_BITS;
  return isLong ? tooLarge() : value;
}

function tooLarge(): never {
  return fail('ValueError', 'a number is too large to compute with');
}
