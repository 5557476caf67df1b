import type { IncomingMessage } from 'node:http';
import { isOfPlayer } from '../../auth/calling-client.ts';
import { readTarget } from '../../protocol/request-target.ts';
import { isRouterPath } from '../../protocol/router.ts';
import { isV2Path } from '../../protocol/v2-paths.ts';

/** Returns true for the page's own calls, except those of its sample, which calls as a client does. */
export function isOfPage({ headers, url = '' }: IncomingMessage): boolean {
  if (headers['holdover-page'] === 'sample') return false;
  const isWatcher = headers.upgrade !== undefined && /[?&]watch=1(&|$)/.test(url);
  if (headers['holdover-page'] !== undefined || isWatcher || isOfPlayer(url)) return true;
  return /^\/holdover(\/|\?|$)/.test(url);
}

/** Returns the API of a call. `other`: the model router, the page and the probes. */
export function apiOf(url: string): 'v1' | 'v2' | 'other' {
  const { path } = readTarget(url);
  if (isV2Path(path)) return 'v2';
  const isOther = isRouterPath(path) || /^\/((healthz|readyz|metrics)(\/|$)|$)/.test(path);
  return isOther ? 'other' : 'v1';
}

/** Returns the type of a picture that may be shown. */
export function shownPictureType(contentType: string): { readonly picture?: string } {
  const [type = ''] = contentType.split(';', 1);
  return SHOWN_PICTURES.has(type) ? { picture: type } : {};
}

/** The formats that are safe to show. A picture that is a document could run scripts. */
const SHOWN_PICTURES = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif']);
