import type Koa from 'koa';
import type { JobEvent } from '../wire/jobs.ts';
import type { Asset, Job } from '../wire/v2.ts';

/**
 * Turns the links the port gives into those a caller gets. A file's `url` is a URI in the contract,
 * and the official Python client takes nothing less; a job's own links may be host-relative.
 */
export type Links = {
  readonly job: (job: Job) => Job;
  readonly asset: (asset: Asset) => Asset;
  readonly event: (event: JobEvent) => JobEvent;
};

export function createLinks(address: {
  /** Where callers reach us, when that is known for certain. */
  readonly baseUrl?: string | undefined;
  /** Where this caller has reached us. */
  readonly reachedAt?: string | undefined;
}): Links {
  const { baseUrl, reachedAt } = address;
  const link = (url: string): string => absolute(url, baseUrl);
  const linked = <T extends { readonly url: string }>(value: T): T => ({
    ...value,
    url: absolute(value.url, baseUrl ?? reachedAt),
  });
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
function absolute(url: string, baseUrl: string | undefined): string {
  const isHostRelative = url.startsWith('/') && !url.startsWith('//');
  return baseUrl !== undefined && isHostRelative ? baseUrl + url : url;
}

/** Scheme and host as a request names them; nothing when it names no host. */
export function reachedAt({ protocol, host }: Pick<Koa.Context, 'protocol' | 'host'>) {
  const address = `${protocol}://${host}`;
  return URL.canParse(address) ? address : undefined;
}
