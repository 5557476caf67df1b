import type { PublicAddress } from '../http/public-address.ts';
import type { JobEvent } from '../protocol/job-api.ts';
import type { Asset, Job } from '../protocol/v2.ts';

/**
 * Turns the links of the port into those a caller gets. A file's `url` is a URI in the contract, and
 * the official Python client accepts nothing less; a job's own links may be host-relative.
 */
export type LinkRewriter = {
  readonly job: (job: Job) => Job;
  readonly asset: (asset: Asset) => Asset;
  readonly event: (event: JobEvent) => JobEvent;
};

type LinkedFile = { readonly id: string; readonly url: string; readonly url_expires_at: string };

export function createLinkRewriter(options: {
  /** The base URL of this caller's requests; `undefined` when the request names no host. */
  readonly address: PublicAddress | undefined;
  /** Signs a link to the bytes of an asset of this caller's. */
  readonly sign?: ((assetId: string) => { query: string; expiresAt: string }) | undefined;
}): LinkRewriter {
  const { address, sign } = options;
  const link = (url: string): string =>
    absolute(url, address?.isStated === true ? address.base : undefined);
  const linked = <T extends LinkedFile>(file: T): T => {
    if (!isHostRelative(file.url)) return file;
    const url = absolute(file.url, address?.base);
    const signed = sign?.(file.id);
    if (signed === undefined) return { ...file, url };
    return { ...file, url: `${url}?${signed.query}`, url_expires_at: signed.expiresAt };
  };
  return {
    asset: linked,
    job: (job) => ({
      ...job,
      outputs: job.outputs.map(linked),
      urls: {
        self: link(job.urls.self),
        events: link(job.urls.events),
        cancel: link(job.urls.cancel),
      },
    }),
    event: (event) => (event.event === 'output' ? { ...event, data: linked(event.data) } : event),
  };
}

/** `//host/…` names another host: it is a full link already. */
function isHostRelative(url: string): boolean {
  return url.startsWith('/') && !url.startsWith('//');
}

function absolute(url: string, base: string | undefined): string {
  return base !== undefined && isHostRelative(url) ? base + url : url;
}
