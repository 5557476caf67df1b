// Loaded into the server under test, which has `--expose-gc`: tells what its main thread still holds.
import { setTimeout as delay } from 'node:timers/promises';

process.on('message', () => void tell());
process.channel?.unref();

async function tell(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    global.gc?.();
    // Objects that wait for a finaliser go with the next collection.
    await delay(100);
  }
  const { heapUsed, external } = process.memoryUsage();
  process.send?.({ heldBytes: heapUsed + external });
}
