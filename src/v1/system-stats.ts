import { freemem, totalmem } from 'node:os';
import type { JsonObject } from '../protocol/json.ts';

/** Version of the v1 server that this one behaves like; clients compare it. */
const V1_VERSION = '0.3.64';

/**
 * `/system_stats`: facts about this process in v1's fields. There is neither Python nor a graphics
 * card here, but clients want a text for the one and numbers for the other. The command line is
 * left out: it may hold a token.
 */
export function systemStats(version: string): JsonObject {
  const total = Math.min(totalmem(), process.constrainedMemory() || Infinity);
  const free = Math.min(freemem(), total);
  return {
    system: {
      os: process.platform === 'win32' ? 'nt' : 'posix',
      ram_total: total,
      ram_free: free,
      comfyui_version: `${V1_VERSION}+holdover.${version}`,
      required_frontend_version: null,
      installed_templates_version: null,
      required_templates_version: null,
      python_version: `n/a (Holdover ${version}, Node.js ${process.version})`,
      pytorch_version: 'n/a',
      embedded_python: false,
      argv: ['holdover'],
    },
    devices: [
      {
        name: 'cpu',
        type: 'cpu',
        index: null,
        vram_total: total,
        vram_free: free,
        torch_vram_total: total,
        torch_vram_free: free,
      },
    ],
  };
}
