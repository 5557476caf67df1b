import { type MaskValue, NodeFailure } from '../node.ts';
import { combo } from '../combo.ts';
import { MASK_EXTRAS, OFFSET, asMask, asPicture, copyOf, eachCoveredRow } from './region.ts';
import { typedNode } from '../typed-node.ts';

type Operation = (destination: number, source: number) => number;

/** Rounds a level before the logical operations as v1 does: half to even. */
const isSet = (level: number): boolean => Math.abs(level) > 0.5;

const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ['multiply', (destination, source) => destination * source],
  ['add', (destination, source) => destination + source],
  ['subtract', (destination, source) => destination - source],
  ['and', (destination, source) => Number(isSet(destination) && isSet(source))],
  ['or', (destination, source) => Number(isSet(destination) || isSet(source))],
  ['xor', (destination, source) => Number(isSet(destination) !== isSet(source))],
]);

/** Combines a mask with another one that is laid over a part of it. */
export const maskComposite = typedNode({
  name: 'MaskComposite',
  ...MASK_EXTRAS,
  displayName: 'Combine Masks',
  required: {
    destination: ['MASK', {}],
    source: ['MASK', {}],
    x: OFFSET,
    y: OFFSET,
    operation: combo([...OPERATIONS.keys()]),
  },
  outputs: [{ type: 'MASK' }],
  run({ source, x, y, ...inputs }, context) {
    const destination = asMask(copyOf(context, asPicture(inputs.destination)));
    // Other words can come through a link only. They change nothing, as in v1.
    const operation = OPERATIONS.get(inputs.operation) ?? ((level: number) => level);
    fittingBatches(destination, source);
    const { data } = destination;
    const covered = { target: destination, source, at: { x, y } };
    eachCoveredRow(context, covered, ({ width, to, from: fromIn }) => {
      const from = fromIn(source);
      for (let i = 0; i < width; i++) {
        data[to + i] = operation(data[to + i] as number, source.data[from + i] as number);
      }
    });
    // The range is also enforced outside of the laid part.
    for (let i = 0; i < data.length; i++) data[i] = Math.min(1, Math.max(0, data[i] as number));
    return { outputs: [destination] };
  },
});

const fittingBatches = (destination: MaskValue, source: MaskValue): void => {
  if (source.batch === 1 || source.batch === destination.batch) return;
  const counts = `${source.batch} masks over ${destination.batch}`;
  throw new NodeFailure('RuntimeError', `Cannot lay ${counts}: there must be one, or as many`);
};
