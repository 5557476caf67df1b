import type { NodeDef } from '../node.ts';
import { typedNode } from '../typed-node.ts';
import { formatText } from './format.ts';
import { TEXT } from './text-node.ts';

const NAMES = Array.from('abcdefghijklmnopqrstuvwxyz');

/** The node that fills values into a text. */
export const FORMAT_NODE: NodeDef = typedNode({
  ...TEXT,
  name: 'StringFormat',
  displayName: 'Format Text',
  description: 'Fills values into a text, in the notation of Python’s str.format.',
  required: {
    values: [
      'COMFY_AUTOGROW_V3',
      { template: { input: { required: { value: ['*', {}] } }, names: NAMES, min: 0 } },
    ],
    f_string: ['STRING', { default: '{a}', multiline: true }],
  },
  run({ values, f_string: template }, context) {
    const { inputTypes = {} } = context;
    const floats = NAMES.filter((name) => inputTypes[`values.${name}`] === 'FLOAT');
    const given = { values, floats: new Set(floats) };
    return { outputs: [formatText(template, given, context)] };
  },
});
