import { type NodeContext, NodeFailure, type Value } from '../node.ts';
import { pythonFloat } from '../../protocol/python-json.ts';
import { reserveText } from './pieces.ts';

const SPEC =
  /^(?:(?<fill>.)?(?<align>[<>=^]))?(?<sign>[+\- ])?(?<alternate>#)?(?<zero>0)?(?<width>\d+)?(?<group>[,_])?(?:\.(?<precision>\d+))?(?<type>[a-zA-Z%])?$/su;

/** The parts of a format specification that are given. */
type Spec = {
  readonly fill?: string;
  readonly align?: string;
  readonly sign?: string;
  readonly alternate?: string;
  readonly zero?: string;
  readonly width?: string;
  readonly group?: string;
  readonly precision?: string;
  readonly type?: string;
};

/** The most digits that are written after a decimal point. */
const MAX_PRECISION = 100;

/** Writes a value by a specification of Python, such as `03d` or `>10.2f`. */
export function formatInSpec(
  { value, isFloat }: { readonly value: Value; readonly isFloat: boolean },
  text: string,
  context: NodeContext,
): string {
  const spec = SPEC.exec(text)?.groups as Spec | undefined;
  if (!spec) throw new NodeFailure('ValueError', 'Invalid format specifier');
  reserveText(context, Number(spec.width ?? 0));
  if (typeof value === 'string') return padded(['', cutText(value, spec)], spec, '<');
  if (value === null || typeof value === 'object') {
    const type = value === null ? 'NoneType' : (value.kind ?? 'dict');
    const message = `unsupported format string passed to ${type}.__format__`;
    throw new NodeFailure('TypeError', message);
  }
  const isWhole = typeof value !== 'number' || (Number.isInteger(value) && !isFloat);
  const wholeNumber = isWhole && !FLOAT_TYPES.test(spec.type ?? '');
  const digits = wholeNumber ? intDigits(BigInt(value), spec) : floatDigits(Number(value), spec);
  return padded(withSign(digits, spec), spec, '>');
}

const FLOAT_TYPES = /^[eEfFgG%]$/;
const RADIX = { b: 2, o: 8, x: 16, X: 16 } as const;

function cutText(value: string, { precision, type = 's' }: Spec): string {
  if (type !== 's') throw unknownType(type, 'str');
  return precision === undefined ? value : Array.from(value).slice(0, Number(precision)).join('');
}

function intDigits(value: bigint, { type = 'd', precision, alternate, group = '' }: Spec): string {
  if (precision !== undefined)
    throw new NodeFailure('ValueError', 'Precision not allowed in integer format specifier');
  const sign = value < 0n ? '-' : '';
  const size = value < 0n ? -value : value;
  if (type === 'd') return sign + grouped(size.toString(), group, 3);
  if (!Object.hasOwn(RADIX, type)) throw unknownType(type, 'int');
  const digits = grouped(size.toString(RADIX[type as keyof typeof RADIX]), group, 4);
  const all = (alternate ? `0${type.toLowerCase()}` : '') + digits;
  return sign + (type === 'X' ? all.toUpperCase() : all);
}

function floatDigits(value: number, spec: Spec): string {
  const { type, group = '' } = spec;
  if (type !== undefined && !FLOAT_TYPES.test(type)) throw unknownType(type, 'float');
  const text = Number.isFinite(value) ? finiteDigits(value, spec) : pythonFloat(value);
  const [signed = ''] = /^-?\d*/.exec(text) ?? [];
  const whole = signed.replace('-', '');
  const sign = signed.slice(0, signed.length - whole.length);
  const rest = text.slice(signed.length) + (type === '%' ? '%' : '');
  const all = sign + grouped(whole, group, 3) + rest;
  return type === 'E' || type === 'G' || type === 'F' ? all.toUpperCase() : all;
}

function finiteDigits(value: number, { type, precision }: Spec): string {
  const places = Number(precision ?? 6);
  if (places > MAX_PRECISION)
    throw new NodeFailure('ValueError', 'Too many decimal digits in format string');
  switch (type?.toLowerCase()) {
    case undefined:
      return precision === undefined ? pythonFloat(value) : withPoint(general(value, places));
    case 'e':
      return exponent(value.toExponential(places));
    case 'g':
      return general(value, places);
    case '%':
      return fixed(value * 100, places);
    default:
      return fixed(value, places);
  }
}

/** Rounds halves to the even digit, as Python does. */
function fixed(value: number, places: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const size = Math.abs(value);
  // Beyond this `toFixed` writes an exponent.
  if (size >= 1e21)
    return sign + BigInt(size).toString() + (places > 0 ? `.${'0'.repeat(places)}` : '');
  const exact = size.toFixed(Math.min(MAX_PRECISION, places + 30));
  const point = exact.indexOf('.');
  const kept = exact.slice(0, point + (places > 0 ? 1 + places : 0)).replace(/\.$/, '');
  const isHalf = /^50*$/.test(exact.slice(point + 1 + places));
  const isEven = Number(kept.at(-1)) % 2 === 0;
  return sign + (isHalf && isEven ? kept : size.toFixed(places));
}

/** At most so many digits, without zeros at the end. */
function general(value: number, places: number): string {
  const digits = Math.max(1, places);
  const rounded = value.toExponential(digits - 1);
  const power = Number(rounded.slice(rounded.indexOf('e') + 1));
  const isSmall = power >= -4 && power < digits;
  const text = isSmall ? value.toFixed(Math.min(MAX_PRECISION, digits - 1 - power)) : rounded;
  const [mantissa = '', exponentPart] = text.split('e');
  const short = mantissa.includes('.') ? withoutZeros(mantissa) : mantissa;
  return exponentPart === undefined ? short : exponent(`${short}e${exponentPart}`);
}

function withoutZeros(text: string): string {
  let end = text.length;
  while (text[end - 1] === '0') end--;
  return text.slice(0, end).replace(/\.$/, '');
}

function withPoint(text: string): string {
  return /[.e]/.test(text) ? text : `${text}.0`;
}

/** Writes an exponent of at least two digits. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === '') return digits;
  const first = digits.length % size || size;
  const groups = [digits.slice(0, first)];
  for (let at = first; at < digits.length; at += size) groups.push(digits.slice(at, at + size));
  return groups.join(separator);
}

function withSign(digits: string, { sign = '-' }: Spec): readonly [sign: string, digits: string] {
  if (digits.startsWith('-')) return ['-', digits.slice(1)];
  return [sign === '-' ? '' : sign, digits];
}

function padded(
  [sign, text]: readonly [sign: string, text: string],
  { fill, align, zero, width }: Spec,
  usual: '<' | '>',
): string {
  const side = align ?? (zero === undefined || usual === '<' ? usual : '=');
  const missing = Math.max(0, Number(width ?? 0) - Array.from(sign + text).length);
  const filler = fill ?? (zero === undefined ? ' ' : '0');
  const left = side === '^' ? Math.floor(missing / 2) : side === '<' ? 0 : missing;
  const [before, after] = [filler.repeat(left), filler.repeat(missing - left)];
  return side === '=' ? sign + before + text : before + sign + text + after;
}

function unknownType(type: string, of: string): NodeFailure {
  const message = `Unknown format code '${type}' for object of type '${of}'`;
  return new NodeFailure('ValueError', message);
}
