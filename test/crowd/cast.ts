import type { Callers } from './callers.ts';
import type { Crowd } from './crowd.ts';
import {
  cancel,
  comeAfterStranger,
  comeLate,
  followSample,
  listen,
  poll,
  pollStatusFirst,
  reuseId,
  takeBack,
  useV2,
} from './programs.ts';

/** Programs of one user in every form, all at once; it is without a key, or all hold the token. */
export function sharedUser(crowd: Crowd, callers: Callers): Promise<unknown>[] {
  const { keyless, emptyBearer, emptyKey } = callers;
  return [
    listen(crowd, keyless, { name: 'script', kinds: ['grown', 'failed', 'sized'] }),
    listen(crowd, keyless, { name: 'waits-for-one', kinds: ['streamed'] }),
    listen(crowd, emptyBearer, { name: 'open-webui', kinds: ['grown'] }),
    listen(crowd, keyless, { name: 'front-end', kinds: ['grown', 'failed'], negotiates: true }),
    listen(crowd, emptyKey, { name: 'hosted-sample', kinds: ['grown', 'failed'] }),
    listen(crowd, emptyKey, { name: 'hosted-front-end', kinds: ['sized'], negotiates: true }),
    poll(crowd, keyless, 'grown'),
    poll(crowd, keyless, 'failed'),
    poll(crowd, keyless, 'streamed'),
    poll(crowd, emptyKey, 'sized'),
    poll(crowd, emptyKey, 'failed'),
    cancel(crowd, keyless),
    cancel(crowd, keyless, 'canceller'),
    takeBack(crowd, keyless),
    takeBack(crowd, keyless, 'takes-back'),
    useV2(crowd, keyless, 'grown'),
    useV2(crowd, keyless, 'misnamed'),
    reuseId(crowd, keyless, 'fixed-id'),
    comeLate(crowd, keyless, { clientId: 'late', when: 'at once' }),
    comeLate(crowd, keyless, { clientId: 'late-failed', when: 'after the end', kind: 'failed' }),
    comeLate(crowd, emptyBearer, { clientId: 'late-after-end', when: 'after the end' }),
    comeLate(crowd, keyless, { clientId: 'late-after-fetch', when: 'after the fetch' }),
    comeAfterStranger(crowd, keyless, 'newcomer'),
  ];
}

/** Programs that are users of their own by their keys. */
export function keyedUsers(crowd: Crowd, callers: Callers): Promise<unknown>[] {
  const { bearer, bareKey, hosted } = callers;
  return [
    // Two tabs of the hosted front end.
    listen(crowd, hosted('tabs-key'), {
      name: 'tab-1',
      kinds: ['grown', 'sized'],
      negotiates: true,
    }),
    listen(crowd, hosted('tabs-key'), {
      name: 'tab-2',
      kinds: ['failed', 'grown'],
      negotiates: true,
    }),
    // And of a local one behind a proxy that adds the header.
    listen(crowd, bearer('local-tabs'), { name: 'tab-3', kinds: ['grown'], negotiates: true }),
    listen(crowd, bearer('local-tabs'), { name: 'tab-4', kinds: ['failed'], negotiates: true }),
    comeLate(crowd, bearer('dify-key'), { clientId: 'dify', when: 'at once' }),
    listen(crowd, bearer('webui-key'), { name: 'webui', kinds: ['grown'] }),
    poll(crowd, bareKey('n8n-key'), 'grown'),
    poll(crowd, bareKey('n8n-key'), 'failed'),
    // A v1 script and a hosted sample with one key.
    listen(crowd, bearer('mixed-key'), { name: 'mixed-script', kinds: ['grown', 'failed'] }),
    listen(crowd, hosted('mixed-key'), { name: 'mixed-sample', kinds: ['failed', 'grown'] }),
    // The same client id with other keys.
    listen(crowd, bearer('namesake-1'), { name: 'same-id', kinds: ['grown'] }),
    listen(crowd, bearer('namesake-2'), { name: 'same-id', kinds: ['failed'] }),
    followSample(crowd, hosted('sample-1'), { name: 'sample-1', when: 'at once' }),
    followSample(crowd, hosted('sample-2'), { name: 'sample-2', when: 'after the end' }),
    followSample(crowd, hosted('sample-3'), { name: 'sample-3', when: 'after another' }),
    pollStatusFirst(crowd, hosted('sample-4'), 'sample-4'),
    crowd.join('silent', bearer('silent-key')),
    crowd.join('silent-hosted', hosted('silent-hosted-key')),
  ];
}

/** A v2 client with the key of a v1 script and of a hosted sample. */
export function keyedV2(crowd: Crowd, callers: Callers): Promise<unknown>[] {
  return [useV2(crowd, callers.hosted('mixed-key'), 'misnamed')];
}

/** Who gets previews of samplers: a prompt may ask for them, a socket may have negotiated them. */
export async function previews(crowd: Crowd, callers: Callers): Promise<void> {
  const asker = callers.bearer('previews-asked');
  await crowd.join('told-of-previews', asker);
  await crowd.join('negotiated', asker, { negotiates: true });
  await crowd.post(asker, 'grown', { asksForPreviews: true });
  const quiet = callers.bearer('previews-unasked');
  await crowd.join('quiet', quiet);
  await crowd.post(quiet, 'grown', { clientId: 'quiet' });
  await crowd.post(quiet, 'grown');
}
