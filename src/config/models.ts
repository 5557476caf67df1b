import { existsSync } from 'node:fs';
import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';
import { parseJsonObject } from './parse-values.ts';

/** Reads the flags of the model router; a file that is not there is refused at once. */
export function modelSettings(flags: Flags) {
  const { modelKeys: keysFile } = flags;
  if (keysFile !== undefined && !existsSync(keysFile)) {
    throw new InvalidSetting(`option '--model-keys': there is no file '${keysFile}'`);
  }
  return {
    /** File of the keys that may call it; `undefined`: any key may, each as a workspace of its own. */
    keysFile,
    limits: {
      inFlight: flags.modelCalls,
      committedCents: flags.modelSpend,
      requestsPerMinute: flags.modelRate,
      deadlineMs: flags.modelTimeout * 1000,
      ...parseJsonObject('--model-limits', flags.modelLimits),
    },
  };
}
