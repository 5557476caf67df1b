import type { NodeDef } from '../../../src/nodes/node.ts';

export const ALL_NODES: ReadonlyMap<string, NodeDef>;
