import { type NodeContext, fail, type Value } from '../node.ts';
import { pythonExponent, pythonFloat } from '../../protocol/python-json.ts';
import { reserveText } from './pieces.ts';

const SPEC =
  /^(?:(?<fill>.)?(?<align>[<>=^]))?(?<sign>[+\- ])?(?<alternate>#)?(?<zero>0)?(?<width>\d+)?(?<group>[,_])?(?:\.(?<precision>\d+))?(?<type>[a-zA-Z%])?$/su;

/** The parts of a format specification that are given. */
type Spec = { readonly [part: string]: string | undefined };

/** The most digits that are written after a decimal point. */
const MAX_PRECISION = 100;

/** Writes a value by a specification of Python, such as `03d` or `>10.2f`. */
export function formatInSpec(
  { value, isFloat }: { readonly value: Value; readonly isFloat: boolean },
  text: string,
  context: NodeContext,
): string {
  const spec = SPEC.exec(text)?.groups as Spec | undefined;
  if (!spec) return fail('ValueError', 'Invalid format specifier');
  reserveText(context, Number(spec['width'] ?? 0));
  const { align = '<' } = spec;
  if (typeof value === 'string') return padded('', cutText(value, spec), { ...spec, align });
  if (value === null || typeof value === 'object') {
    const type = value === null ? 'NoneType' : (value.kind ?? 'dict');
    return fail('TypeError', `unsupported format string passed to ${type}.__format__`);
  }
  const isWhole = typeof value !== 'number' || (Number.isInteger(value) && !isFloat);
  const isInt = isWhole && !/^[eEfFgG%]$/.test(spec['type'] ?? '');
  return numberText(isInt ? intParts(BigInt(value), spec) : floatParts(Number(value), spec), spec);
}

function cutText(value: string, spec: Spec): string {
  const { type = 's', precision, align, sign, alternate, group } = spec;
  if (type !== 's') return unknownType(type, 'str');
  const refused = sign ?? alternate ?? group ?? (align === '=' ? align : undefined);
  if (refused !== undefined) return notAllowed(`'${refused}'`, 'string');
  return precision === undefined ? value : Array.from(value).slice(0, Number(precision)).join('');
}

/** A number that is not yet grouped and padded. */
type NumberParts = {
  /** The sign and the prefix of the base. */
  readonly head: string;
  readonly whole: string;
  readonly rest: string;
  /** The digits of a group. */
  readonly size: 3 | 4;
};

const RADIX = { b: 2, o: 8, x: 16, X: 16 } as const;

function intParts(value: bigint, { type = 'd', precision, alternate, group }: Spec): NumberParts {
  if (precision !== undefined) return notAllowed('Precision', 'integer');
  const sign = value < 0n ? '-' : '';
  const size = value < 0n ? -value : value;
  if (type === 'd' || type === 'n')
    return { head: sign, whole: size.toString(), rest: '', size: 3 };
  if (!Object.hasOwn(RADIX, type)) return unknownType(type, 'int');
  if (group === ',') return fail('ValueError', `Cannot specify ',' with '${type}'.`);
  const digits = size.toString(RADIX[type as keyof typeof RADIX]);
  const whole = type === 'X' ? digits.toUpperCase() : digits;
  return { head: sign + (alternate ? `0${type}` : ''), whole, rest: '', size: 4 };
}

function floatParts(value: number, spec: Spec): NumberParts {
  const { type = '', alternate } = spec;
  if (!/^[eEfFgGn%]?$/.test(type)) return unknownType(type, 'float');
  const text = Number.isFinite(value) ? finiteDigits(value, spec) : pythonFloat(value);
  const [start = '', head = '', whole = ''] = /^(-?)(\d*)/.exec(text) ?? [];
  const digits = text.slice(start.length);
  const point = alternate && whole !== '' && !digits.startsWith('.') ? '.' : '';
  const rest = point + digits + (type === '%' ? '%' : '');
  const shown = /[EFG]/.test(type) ? rest.toUpperCase() : rest;
  return { head, whole, rest: shown, size: 3 };
}

function finiteDigits(value: number, spec: Spec): string {
  const { type = '', precision } = spec;
  const places = Number(precision ?? 6);
  if (places > MAX_PRECISION) return fail('ValueError', 'Too many decimal digits in format string');
  if (type === '' && precision === undefined) return pythonFloat(value);
  if (/[eE]/.test(type)) return pythonExponent(exponential(value, places));
  if (/^[gGn]?$/.test(type)) return general(value, places, spec);
  return fixed(type === '%' ? value * 100 : value, places);
}

/** Writes a number with so many digits behind the point. */
export function fixed(value: number, places: number): string {
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const size = Math.abs(value);
  // Beyond this `toFixed` writes an exponent.
  if (size >= 1e21)
    return sign + BigInt(size).toString() + (places > 0 ? `.${'0'.repeat(places)}` : '');
  const exact = size.toFixed(Math.min(MAX_PRECISION, places + 30));
  return sign + halfToEven(size.toFixed(places), exact, places);
}

function exponential(value: number, places: number): string {
  return halfToEven(value.toExponential(places), value.toExponential(MAX_PRECISION), places);
}

/** JavaScript rounds halves up, Python to the even digit. `exact` has all digits. */
function halfToEven(rounded: string, exact: string, places: number): string {
  const end = exact.indexOf('.') + 1 + places;
  const kept = exact.slice(0, places > 0 ? end : end - 1);
  const half = /^50*(?<power>e.*)?$/.exec(exact.slice(end));
  const isEven = Number(kept.at(-1)) % 2 === 0;
  return half && isEven ? kept + (half.groups?.['power'] ?? '') : rounded;
}

/** At most so many digits, without zeros at the end unless the alternate form is asked for. */
function general(value: number, places: number, { type, alternate }: Spec): string {
  const digits = Math.max(1, places);
  const rounded = exponential(value, digits - 1);
  const power = Number(rounded.slice(rounded.indexOf('e') + 1));
  // Without a type a digit stands behind the point.
  const isSmall = power >= -4 && power < (type === undefined ? digits - 1 : digits);
  const text = isSmall ? fixed(value, Math.min(MAX_PRECISION, digits - 1 - power)) : rounded;
  const [mantissa = '', exponentPart] = text.split('e');
  const isCut = mantissa.includes('.') && alternate === undefined;
  const short = isCut ? withoutZeros(mantissa) : mantissa;
  if (exponentPart !== undefined) return pythonExponent(`${short}e${exponentPart}`);
  return type === undefined && !short.includes('.') ? `${short}.0` : short;
}

function withoutZeros(text: string): string {
  let end = text.length;
  while (text[end - 1] === '0') end--;
  return text.slice(0, end).replace(/\.$/, '');
}

function numberText({ head, whole, rest, size }: NumberParts, spec: Spec): string {
  const { zero, sign = '-', group = '' } = spec;
  const { align = zero ? '=' : '>', fill = zero ?? ' ' } = spec;
  const signed = sign === '-' || head.startsWith('-') ? head : sign + head;
  const room = Math.max(0, Number(spec['width'] ?? 0) - signed.length - rest.length);
  const separators = group === '' ? 0 : Math.floor(Math.max(0, room - 1) / (size + 1));
  // Zeros before a number are grouped with it.
  const digits = align === '=' && fill === '0' ? whole.padStart(room - separators, '0') : whole;
  return padded(signed, grouped(digits, group, size) + rest, { ...spec, align });
}

function grouped(digits: string, separator: string, size: number): string {
  if (separator === '') return digits;
  const first = digits.length % size || size;
  const groups = [digits.slice(0, first)];
  for (let at = first; at < digits.length; at += size) groups.push(digits.slice(at, at + size));
  return groups.join(separator);
}

function padded(
  head: string,
  text: string,
  { align, width, zero = ' ', fill = zero }: Spec,
): string {
  const missing = Math.max(0, Number(width ?? 0) - Array.from(head + text).length);
  const left = align === '^' ? Math.floor(missing / 2) : align === '<' ? 0 : missing;
  const [before, after] = [fill.repeat(left), fill.repeat(missing - left)];
  return align === '=' ? head + before + text : before + head + text + after;
}

function unknownType(type: string, of: string): never {
  return fail('ValueError', `Unknown format code '${type}' for object of type '${of}'`);
}

function notAllowed(what: string, of: string): never {
  return fail('ValueError', `${what} not allowed in ${of} format specifier`);
}
