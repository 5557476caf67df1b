import { exactInt } from '../logic.ts';
import { type NodeDef, type Value, fail } from '../node.ts';
import { LETTERS, autogrow, typedNode } from '../typed-node.ts';
import type { Part } from './evaluate.ts';
import { type PythonNumber, truncated } from './python-numbers.ts';

/** The node that computes a Python expression. */
export const MATH_NODE: NodeDef = typedNode({
  name: 'ComfyMathExpression',
  displayName: 'Math Expression',
  description: 'Computes an expression in the notation of Python, such as “a // 8 * 8”.',
  category: 'utilities',
  pythonModule: 'comfy_extras.nodes_math',
  style: 'v3',
  required: {
    expression: ['STRING', { default: 'a + b', multiline: true }],
    values: autogrow({ value: ['FLOAT,INT,BOOLEAN', {}] }, { names: LETTERS, min: 1 }),
  },
  outputs: [{ type: 'FLOAT' }, { type: 'INT' }, { type: 'BOOLEAN', name: 'BOOL' }],
  async run({ expression, values }, { inputTypes = {} }) {
    if (expression.trim() === '') return fail('ValueError', 'Expression cannot be empty.');
    const given = Object.entries(values).map(
      ([name, value]) => [name, asPython(value, inputTypes[`values.${name}`])] as const,
    );
    const names = new Map<string, Part>([...given, ['values', given.map(([, value]) => value)]]);
    // A server that computes no expression does not load the parser.
    const { evaluate } = await import('./evaluate.ts');
    return { outputs: outputsOf(evaluate(expression, names), expression) };
  },
});

/** A whole FLOAT has the same form here as an INT: the declared type tells them apart. */
function asPython(value: PythonNumber, type: string | undefined): PythonNumber {
  return typeof value === 'number' && type !== 'FLOAT' && Number.isInteger(value)
    ? BigInt(value)
    : value;
}

/** The result as FLOAT, INT and BOOLEAN. */
function outputsOf(result: Part, expression: string): readonly Value[] {
  const about = `Math Expression '${expression}'`;
  if (typeof result === 'object')
    return fail('ValueError', `${about} must evaluate to a numeric result, got list`);
  const float = Number(result);
  if (!Number.isFinite(float)) return fail('ValueError', `${about} produced a non-finite result`);
  return [float, exactInt(truncated(result)), Boolean(result)];
}
