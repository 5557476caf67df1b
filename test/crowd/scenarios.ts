import type { Callers } from './callers.ts';
import type { ClientGroup } from './client-group.ts';
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
} from './client-programs.ts';

/** Programs of all forms at once: those for the original server without a key, or all with the token. */
export function sharedUser(group: ClientGroup, callers: Callers): Promise<unknown>[] {
  const { keyless, emptyBearer, sample } = callers;
  return [
    listen(group, keyless, { name: 'script', kinds: ['grown', 'failed', 'sized'] }),
    listen(group, keyless, { name: 'waits-for-one', kinds: ['streamed'] }),
    listen(group, emptyBearer, { name: 'open-webui', kinds: ['grown'] }),
    listen(group, keyless, { name: 'front-end', kinds: ['grown'], negotiates: true }),
    listen(group, sample, { name: 'hosted-sample', kinds: ['grown', 'failed'] }),
    listen(group, sample, { name: 'hosted-front-end', kinds: ['sized'], negotiates: true }),
    poll(group, keyless, 'grown'),
    poll(group, keyless, 'failed'),
    poll(group, keyless, 'streamed'),
    poll(group, sample, 'sized'),
    cancel(group, keyless),
    cancel(group, keyless, 'canceller'),
    takeBack(group, keyless),
    takeBack(group, keyless, 'takes-back'),
    useV2(group, keyless, 'grown'),
    useV2(group, keyless, 'misnamed'),
    reuseId(group, keyless, 'fixed-id'),
    comeLate(group, keyless, { clientId: 'late', when: 'at once' }),
    comeLate(group, keyless, { clientId: 'late-failed', when: 'after the end', kind: 'failed' }),
    comeLate(group, emptyBearer, { clientId: 'late-after-end', when: 'after the end' }),
    comeLate(group, keyless, { clientId: 'late-after-fetch', when: 'after the fetch' }),
    comeAfterStranger(group, keyless, 'newcomer'),
  ];
}

/** Programs that are users of their own by their keys. */
export function keyedUsers(group: ClientGroup, callers: Callers): Promise<unknown>[] {
  const { bearer, bareKey, hosted } = callers;
  return [
    // Two tabs of the hosted front end.
    listen(group, hosted('tabs-key'), {
      name: 'tab-1',
      kinds: ['grown', 'sized'],
      negotiates: true,
    }),
    listen(group, hosted('tabs-key'), {
      name: 'tab-2',
      kinds: ['failed'],
      negotiates: true,
    }),
    // And of a local one behind a proxy that adds the header.
    listen(group, bearer('local-tabs'), { name: 'tab-3', kinds: ['grown'], negotiates: true }),
    listen(group, bearer('local-tabs'), { name: 'tab-4', kinds: ['failed'], negotiates: true }),
    comeLate(group, bearer('dify-key'), { clientId: 'dify', when: 'at once' }),
    listen(group, bearer('webui-key'), { name: 'webui', kinds: ['grown'] }),
    poll(group, bareKey('n8n-key'), 'grown'),
    poll(group, bareKey('n8n-key'), 'failed'),
    // A v1 script and a hosted sample with one key.
    listen(group, bearer('mixed-key'), { name: 'mixed-script', kinds: ['grown', 'failed'] }),
    listen(group, hosted('mixed-key'), { name: 'mixed-sample', kinds: ['grown'] }),
    // The same client id with other keys.
    listen(group, bearer('namesake-1'), { name: 'same-id', kinds: ['grown'] }),
    listen(group, bearer('namesake-2'), { name: 'same-id', kinds: ['failed'] }),
    followSample(group, hosted('sample-1'), { name: 'sample-1', when: 'at once' }),
    followSample(group, hosted('sample-2'), { name: 'sample-2', when: 'after the end' }),
    followSample(group, hosted('sample-3'), { name: 'sample-3', when: 'after another' }),
    pollStatusFirst(group, hosted('sample-4'), 'sample-4'),
    group.join('silent', bearer('silent-key')),
    group.join('silent-hosted', hosted('silent-hosted-key')),
  ];
}

/** A v2 client with the key of a v1 script and of a hosted sample. */
export function keyedV2(group: ClientGroup, callers: Callers): Promise<unknown>[] {
  return [useV2(group, callers.hosted('mixed-key'), 'misnamed')];
}

/** Previews of samplers: a prompt may ask for them, a socket may have negotiated them. */
export async function previews(group: ClientGroup, callers: Callers): Promise<void> {
  const asker = callers.bearer('previews-asked');
  await group.join('told-of-previews', asker);
  await group.join('negotiated', asker, { negotiates: true });
  await group.post(asker, 'grown', { asksForPreviews: true });
  const quiet = callers.bearer('previews-unasked');
  await group.join('quiet', quiet);
  await group.post(quiet, 'grown', { clientId: 'quiet' });
  await group.post(quiet, 'grown');
}
