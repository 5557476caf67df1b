import type { NodeDef } from './node.ts'; export const MASK_NODES: readonly NodeDef[] = [];
