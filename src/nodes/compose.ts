import type { NodeDef } from './node.ts'; export const COMPOSE_NODES: readonly NodeDef[] = [];
