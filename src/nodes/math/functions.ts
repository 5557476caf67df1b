import { fail } from '../node.ts';
import { roundHalfEven } from '../tensor.ts';
import { type PythonNumber, add, plain, power, rounded, truncated } from './python-numbers.ts';

type Arguments = readonly PythonNumber[];

/** The longest exponent of `pow`. */
const MAX_EXPONENT = 4000;

/** A function of floats. NaN: the value is outside its domain. */
const ofFloats =
  (compute: (...values: readonly number[]) => number) =>
  (values: Arguments): number => {
    const result = compute(...values.map(Number));
    return Number.isNaN(result) || result === -Infinity
      ? fail('ValueError', 'math domain error')
      : result;
  };

const toInt =
  (round: (value: number) => number) =>
  ([value]: Arguments): PythonNumber =>
    typeof value === 'number' ? truncated(round(value)) : plain(value ?? missing());

/** The one of the values for which `isBetter` than each of the others. */
const best =
  (isBetter: (a: bigint | number, b: bigint | number) => boolean) =>
  (values: Arguments): PythonNumber =>
    values.length === 0
      ? missing()
      : values.reduce((kept, next) => (isBetter(plain(next), plain(kept)) ? next : kept));

/** The functions that an expression may call. A list counts as its values. */
export const FUNCTIONS: { readonly [name: string]: (values: Arguments) => PythonNumber } = {
  sum: (values) => values.reduce(add, 0n),
  min: best((a, b) => a < b),
  max: best((a, b) => a > b),
  abs: ([value = missing()]) => (Number(value) < 0 ? -plain(value) : plain(value)),
  round: ([value = missing(), digits]) =>
    digits === undefined ? toInt(roundHalfEven)([value]) : rounded(value, Number(digits)),
  pow([base = missing(), exponent = missing()]) {
    if (Math.abs(Number(exponent)) > MAX_EXPONENT)
      return fail('ValueError', `Exponent ${exponent} exceeds maximum allowed (${MAX_EXPONENT})`);
    return power(base, exponent);
  },
  sqrt: ofFloats(Math.sqrt),
  ceil: toInt(Math.ceil),
  floor: toInt(Math.floor),
  log: ofFloats((value, base) =>
    base === undefined ? Math.log(value) : Math.log(value) / Math.log(base),
  ),
  log2: ofFloats(Math.log2),
  log10: ofFloats(Math.log10),
  sin: ofFloats(Math.sin),
  cos: ofFloats(Math.cos),
  tan: ofFloats(Math.tan),
  int: toInt(Math.trunc),
  float: ([value = missing()]) => Number(value),
};

function missing(): never {
  return fail('TypeError', 'a function misses an argument');
}
