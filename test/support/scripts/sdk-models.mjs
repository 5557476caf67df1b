// Drives the model router with the official SDK, unchanged; prints what it saw as one JSON line.
// COMFY_ROUTER_BASE_URL and COMFY_API_KEY name the service. Needs Node >= 22, as the SDK does.
import { comfy } from '@comfyorg/sdk';

const seen = {};
const run = (...call) => comfy.models.run(...call);
const caught = (work) =>
  work.then(
    () => ({ name: 'none' }),
    ({ constructor, code, httpStatus, requestId, details }) => ({
      name: constructor.name,
      code,
      httpStatus,
      hasRequestId: typeof requestId === 'string' && requestId !== '',
      details,
    }),
  );

const first = await run('local/digest', { text: 'x' });
seen.run = { data: first.data, requestId: typeof first.requestId };

const key = { idempotencyKey: 'sdk-key' };
const picture = { width: 32, height: 32, seed: 5 };
const [once, twice] = [
  await run('local/procedural-image', picture, key),
  await run('local/procedural-image', picture, key),
];
seen.replay = {
  same: JSON.stringify(once.data) === JSON.stringify(twice.data),
  width: once.data.image.width,
};

seen.conflict = await caught(run('local/procedural-image', { ...picture, seed: 6 }, key));
seen.notFound = await caught(run('local/digset', {}));
seen.invalid = await caught(run('local/image-blur', { sigma: 0 }));
seen.refused = await caught(
  run('local/delay', { seconds: 0, outcome: 'content_policy_violation' }),
);
seen.failed = await caught(
  run('local/delay', { seconds: 0, outcome: 'provider_error' }, { retry: false }),
);
seen.aborted = await caught(
  run('local/delay', { seconds: 60 }, { signal: AbortSignal.timeout(100), retry: false }),
);
console.log(JSON.stringify(seen));
