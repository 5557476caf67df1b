import type { NodeDef } from './node.ts'; export const TRANSFORM_NODES: readonly NodeDef[] = [];
