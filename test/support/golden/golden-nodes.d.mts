import type { NodeDef } from '../../../src/nodes/node.ts';

export declare const ALL_NODES: ReadonlyMap<string, NodeDef>;
