import { createRequire } from 'node:module';
import type HttpProxy from 'http-proxy';

const require = createRequire(import.meta.url);

/**
 * Loads http-proxy 1.18.1 without its deprecated call. The library takes `util._extend` while it
 * loads, and Node 24 reports DEP0060 at the first call of that function. For the arguments of the
 * library `Object.assign` does the same.
 */
export function loadHttpProxy(): typeof HttpProxy {
  const util = require('node:util') as { _extend: unknown };
  const extend = util._extend;
  util._extend = Object.assign;
  try {
    return require('http-proxy') as typeof HttpProxy;
  } finally {
    util._extend = extend;
  }
}
