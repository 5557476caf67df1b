import type { JobEvent } from '../wire/jobs.ts';
import type { Asset, Job } from '../wire/v2.ts';

/** Turns the links the port gives into those a caller gets: absolute when our address is known. */
export type Links = {
  readonly job: (job: Job) => Job;
  readonly asset: (asset: Asset) => Asset;
  readonly event: (event: JobEvent) => JobEvent;
};

export function createLinks(baseUrl: string | undefined): Links {
  const link = (url: string): string => absolute(url, baseUrl);
  const linked = <T extends { readonly url: string }>(value: T): T => ({
    ...value,
    url: link(value.url),
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
