import { existsSync } from 'node:fs';
import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';

/**
 * Returns the file of the keys that may call the model router; `undefined`: any key may, each as a workspace of its
 * own. Throws when the file does not exist.
 */
export function modelKeysFile({ modelKeys: keysFile }: Flags): string | undefined {
  if (keysFile !== undefined && !existsSync(keysFile)) {
    throw new InvalidSetting(`option '--model-keys': there is no file '${keysFile}'`);
  }
  return keysFile;
}
