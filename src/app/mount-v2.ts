import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Config } from '../config/config.ts';
import type { DataDir } from './data-dir.ts';
import { createV2Routes } from '../v2/routes.ts';
import { createContentSigner } from '../v2/signed-content.ts';
import type { BodyReader } from '../http/json-body.ts';
import type { PublicAddresses } from '../http/public-address.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { type LazyModelRouter, createLazyModelRouter } from '../models/lazy-router.ts';
import type { PassThrough } from '../upstreams/passthrough/pass-through.ts';
import type { Logger } from '../observability/log.ts';
import type { ExternalJobImporter } from '../prompts/import-external-job.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import { createFindJobId, withPromptIds } from '../prompts/find-by-prompt-id.ts';
import { externalJobOfEngine, externalJobOfService } from '../prompts/external-job.ts';
import type { MarkJobFetched } from '../prompts/mark-fetched.ts';
import type { Authenticate, Identify } from '../auth/identity.ts';
import type { JobApi } from '../protocol/job-api.ts';

type MountOptions = {
  readonly config: Config;
  readonly upstream: { readonly jobs: JobApi };
  readonly ledger: Ledger;
  readonly livePrompts: LivePrompts;
  readonly dir: DataDir;
  readonly identify: Identify;
  readonly authenticate: Authenticate;
  readonly log: Logger;
  readonly bodies: BodyReader;
  readonly externalJobs: ExternalJobImporter;
  readonly markJobFetched: MarkJobFetched;
  readonly addresses: PublicAddresses;
  readonly now: () => number;
};

/** The embedded engine's own v2 routes; those of a remote service are passed through. */
export function mountEmbeddedV2(deps: MountOptions): Koa.Middleware[] {
  const { config, upstream, identify, log, dir, bodies, externalJobs, addresses, now } = deps;
  if (config.upstream.kind !== 'embedded') return [];
  return [
    createV2Routes({
      maxUploadBytes: config.maxUploadBytes,
      bodies,
      jobs: withPromptIds(upstream.jobs, deps),
      log,
      spoolDir: dir.spool,
      addresses,
      signer: createContentSigner({ secret: dir.secret, now }),
      identify: (ctx) => identify(ctx.req),
      onSubmit: (submitted) => externalJobs.importJob(externalJobOfEngine(submitted)),
      onFetch: deps.markJobFetched,
    }),
  ];
}

/** The models that run here; those of a remote service are passed through. */
export async function openEmbeddedRouter(
  deps: Omit<MountOptions, 'externalJobs' | 'markJobFetched'> & { readonly jobs: JobApi },
): Promise<LazyModelRouter | undefined> {
  const { config, dir, identify } = deps;
  if (config.upstream.kind !== 'embedded') return undefined;
  const models = createLazyModelRouter(async () => {
    const { openEmbeddedModels } = await import('../models/open-models.ts');
    return openEmbeddedModels({
      ...deps,
      ...config.models,
      secret: dir.secret,
      spoolDir: dir.spool,
      callerOf: (key) => identify({ headers: { 'x-api-key': key }, url: '' }),
    });
  });
  // A broken file of keys is reported at the start.
  if (config.models.keysFile !== undefined) await models.open();
  return models;
}

/** The v2 and model routes of a remote service, passed through unchanged. */
export async function openPassThrough(deps: MountOptions): Promise<PassThrough | undefined> {
  const { config, authenticate, log, externalJobs } = deps;
  const { upstream } = config;
  if (upstream.kind === 'embedded') return undefined;
  const { createPassThrough } = await import('../upstreams/passthrough/pass-through.ts');
  const { url: baseUrl, key, routerPrefix, limits } = upstream;
  return createPassThrough({
    baseUrl,
    key,
    localToken: config.localToken,
    routerPrefix,
    authenticate: (request: IncomingMessage) => authenticate(request),
    jobIdOf: createFindJobId(deps),
    log,
    limits,
    onJobCall(observed) {
      if (observed.kind === 'fetched') return deps.markJobFetched(observed);
      if (observed.kind === 'cancelled')
        return void externalJobs.recordCancel(observed.caller, observed.jobId);
      void externalJobOfService(observed).then(
        (externalJob) => externalJob && externalJobs.importJob(externalJob),
      );
    },
  });
}
