import { fail } from '../node.ts';
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@lezer/python';
import { FUNCTIONS } from './functions.ts';
import { OPERATORS, type PythonNumber, plain } from './python-numbers.ts';

/** The value of a part of an expression. Only the name `values` is a list. */
export type Part = PythonNumber | readonly PythonNumber[];

type Scope = { readonly text: string; readonly names: ReadonlyMap<string, Part> };

/** Deeper expressions are refused, in Python at about this depth. */
const MAX_DEPTH = 200;

/**
 * Computes a Python expression of numbers, names and the functions of `FUNCTIONS`. Fails as a node
 * does.
 */
export function evaluate(expression: string, names: Scope['names']): Part {
  const text = expression.trim();
  const statement = parser.parse(text).topNode.firstChild;
  if (statement?.name !== 'ExpressionStatement' || statement.nextSibling)
    return fail('SyntaxError', 'invalid syntax');
  return read(statement.firstChild, { text, names }, 0);
}

function read(node: SyntaxNode | null | undefined, scope: Scope, depth: number): Part {
  if (!node || node.type.isError) return fail('SyntaxError', 'invalid syntax');
  if (depth > MAX_DEPTH) return tooDeep();
  const part = Object.hasOwn(PARTS, node.name) ? PARTS[node.name] : undefined;
  if (!part) return notAvailable(node.name);
  return part(childrenOf(node), {
    node,
    text: scope.text.slice(node.from, node.to),
    scope,
    read: (child) => read(child, scope, depth + 1),
  });
}

type Reading = {
  readonly node: SyntaxNode;
  readonly text: string;
  readonly scope: Scope;
  readonly read: (node: SyntaxNode | undefined) => Part;
};
type ReadPart = (children: readonly SyntaxNode[], reading: Reading) => Part;

const PARTS: { readonly [name: string]: ReadPart } = {
  Number: (_, { text }) => literal(text.replaceAll('_', '')),
  Boolean: (_, { text }) => text === 'True',
  VariableName(_, { text, scope }) {
    const message = `'${text}' is not defined for expression '${scope.text}'`;
    return scope.names.get(text) ?? fail('simpleeval.NameNotDefined', message);
  },
  ParenthesizedExpression: ([, inner], { read }) => read(inner),
  UnaryExpression([operator, operand], { node, text, read }) {
    if (operator?.name === 'not') return readLogic(tokensOf(node), read);
    const value = plain(numberIn(read(operand)));
    // `~x` is `x ^ -1`.
    if (text[0] === '~') return OPERATORS['^']?.(value, -1n) ?? value;
    return text[0] === '-' ? -value : value;
  },
  BinaryExpression([left, operator, right], { node, scope, read }) {
    if (operator?.name === 'and' || operator?.name === 'or') return readLogic(tokensOf(node), read);
    const name = textOf(operator, scope);
    const operate = OPERATORS[name];
    if (operate) return operate(numberIn(read(left)), numberIn(read(right)));
    return readComparison(node, scope, read);
  },
  ConditionalExpression: ([then, , condition, , otherwise], { read }) =>
    read(isTrue(read(condition)) ? then : otherwise),
  MemberExpression([list, bracket, index], { read }) {
    const [values, place] = [read(list), read(bracket?.name === '[' ? index : undefined)];
    const items = Array.isArray(values) ? (values as readonly PythonNumber[]) : [];
    return items.at(Number(numberIn(place))) ?? fail('IndexError', 'list index out of range');
  },
  CallExpression([called, list], { scope, read }) {
    const name = textOf(called, scope);
    const call = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    const message = `Function '${name}' not defined, for expression '${scope.text}'.`;
    if (!call) return fail('simpleeval.FunctionNotDefined', message);
    const given = childrenOf(list).filter(({ name: token }) => !/^[(),]$/.test(token));
    return call(given.map((argument) => read(argument)).flat());
  },
};

type ReadNode = Reading['read'];

/**
 * The words and operands of an expression of `and`, `or` and `not`. The parser binds `not` too
 * loosely: it reads `not a or b` as `not (a or b)`.
 */
function tokensOf(node: SyntaxNode): readonly SyntaxNode[] {
  const parts = childrenOf(node);
  const isLogic = parts.some(({ name }) => name === 'and' || name === 'or' || name === 'not');
  return isLogic && /^(Unary|Binary)/.test(node.name) ? parts.flatMap(tokensOf) : [node];
}

/** `or` binds less than `and`, and `and` less than `not`. The last operand that is read counts. */
function readLogic(tokens: readonly SyntaxNode[], read: ReadNode): Part {
  for (const word of ['or', 'and'] as const) {
    const at = tokens.findLastIndex(({ name }) => name === word);
    if (at === -1) continue;
    const left = readLogic(tokens.slice(0, at), read);
    return isTrue(left) === (word === 'or') ? left : readLogic(tokens.slice(at + 1), read);
  }
  const [first, ...rest] = tokens;
  return first?.name === 'not' ? !isTrue(readLogic(rest, read)) : read(first);
}

/** Python reads `a < b < c` as `a < b and b < c`, and computes `b` once. */
function readComparison(node: SyntaxNode, scope: Scope, read: ReadNode): boolean {
  const links = [childrenOf(node)];
  for (let left = links[0]?.[0]; isComparison(left, scope); left = links[0]?.[0]) {
    if (links.unshift(childrenOf(left)) > MAX_DEPTH) return tooDeep();
  }
  let before = numberIn(read(links[0]?.[0]));
  for (const [, operator, right] of links) {
    const next = numberIn(read(right));
    const compare = COMPARE[textOf(operator, scope)] ?? notAvailable(textOf(operator, scope));
    if (!compare(plain(before), plain(next))) return false;
    before = next;
  }
  return true;
}

function tooDeep(): never {
  return fail('RecursionError', 'the expression is nested too deep');
}

function notAvailable(what: string): never {
  const message = `Sorry, ${what} is not available in this evaluator`;
  return fail('simpleeval.FeatureNotAvailable', message);
}

function literal(text: string): PythonNumber {
  if (/^(\d+|0[xob][\da-f]+)$/i.test(text)) return BigInt(text);
  const number = Number(text);
  return Number.isNaN(number) ? fail('SyntaxError', 'invalid syntax') : number;
}

function numberIn(value: Part): PythonNumber {
  return typeof value === 'object' ? fail('TypeError', 'a list is no number') : value;
}

function isTrue(value: Part): boolean {
  return typeof value === 'object' ? value.length > 0 : Boolean(value);
}

function isComparison(node: SyntaxNode | undefined, scope: Scope): boolean {
  if (node?.name !== 'BinaryExpression') return false;
  return Object.hasOwn(COMPARE, textOf(childrenOf(node)[1], scope));
}

const COMPARE: {
  readonly [operator: string]: (a: bigint | number, b: bigint | number) => boolean;
} = {
  '<': (a, b) => a < b,
  '>': (a, b) => a > b,
  '<=': (a, b) => a <= b,
  '>=': (a, b) => a >= b,
  '==': isEqual,
  '!=': (a, b) => !isEqual(a, b),
};

/** An int and a float may be equal. */
function isEqual(a: bigint | number, b: bigint | number): boolean {
  return !(a < b) && !(a > b);
}

function textOf(node: SyntaxNode | undefined, { text }: Scope): string {
  return node ? text.slice(node.from, node.to) : '';
}

function childrenOf(node: SyntaxNode | undefined): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node?.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}
