import type { Pixels, Inputs, NodeContext, NodeDef, Value } from '../../../src/nodes/node.ts';
import { fakeContext } from './pixels.ts';

/** A picture of those sides whose levels follow from their place, reproducible and without symmetry. */
export const picture = (shape: {
  readonly width: number;
  readonly height: number;
  readonly channels?: number;
  readonly batch?: number;
  readonly level?: (index: number) => number;
}): Pixels => {
  const { width, height, channels = 3, batch = 1, level = scattered } = shape;
  const data = Float32Array.from({ length: batch * height * width * channels }, (_, i) => level(i));
  return { kind: 'image', batch, height, width, channels, data };
};

/** The levels of pixels of one channel as rows of text. */
export const rowsOf = ({ data, width }: Pixels): string =>
  Array.from({ length: data.length / width }, (_, y) =>
    data.slice(y * width, (y + 1) * width).join(' '),
  ).join(' | ');

const scattered = (index: number): number => (((index + 7) * 7919) % 256) / 255;

/** The node of that name. */
export const nodeNamed = (nodes: readonly NodeDef[], name: string): NodeDef => {
  const found = nodes.find((node) => node.name === name);
  if (!found) throw new Error(`no node ${name}`);
  return found;
};

/** Runs one node outside any graph and answers its outputs. */
export const runNode = async (
  node: NodeDef,
  inputs: Inputs,
  context: NodeContext = fakeContext({}),
): Promise<readonly (Value | readonly Value[])[]> => (await node.run(inputs, context)).outputs;

/** The same for a node with one picture as its first output. */
export const runToImage = async (
  node: NodeDef,
  inputs: Inputs,
  context?: NodeContext,
): Promise<Pixels> => (await runNode(node, inputs, context))[0] as Pixels;
