import type { NodeDef } from './node.ts'; export const GENERATOR_NODES: readonly NodeDef[] = [];
