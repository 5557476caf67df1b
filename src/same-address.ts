import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { Config } from './config.ts';
import type { DataDir } from './data-dir.ts';
import { createV2Routes } from './engine/http.ts';
import { createContentSigner } from './engine/signed-content.ts';
import type { BodyReader } from './http/json-body.ts';
import type { PublicAddresses } from './http/public-address.ts';
import type { Ledger } from './ledger/ledger.ts';
import { type LazyModelRouter, createLazyModelRouter } from './models/later.ts';
import type { PassThrough } from './passthrough/passthrough.ts';
import type { Logger } from './telemetry.ts';
import type { ExternalJobImporter } from './v1/adopt.ts';
import type { LivePrompts } from './v1/board.ts';
import { createFindJobId, withPromptIds } from './v1/both-ids.ts';
import { externalJobOfEngine, externalJobOfService } from './v1/foundling.ts';
import type { MarkJobFetched } from './v1/fetched.ts';
import type { Authenticate, Identify } from './v1/identity.ts';
import type { JobApi } from './wire/jobs.ts';

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
    const { openEmbeddedModels } = await import('./models/embedded.ts');
    return openEmbeddedModels({
      ...deps,
      ...config.models,
      secret: dir.secret,
      spoolDir: dir.spool,
      callerOf: (key) => identify({ headers: { 'x-api-key': key }, url: '' }),
    });
  });
  // A broken file of keys is told of at the start.
  if (config.models.keysFile !== undefined) await models.open();
  return models;
}

/** What a remote service serves, at our address as it is. */
export async function openPassThrough(deps: MountOptions): Promise<PassThrough | undefined> {
  const { config, authenticate, log, externalJobs } = deps;
  const { upstream } = config;
  if (upstream.kind === 'embedded') return undefined;
  const { createPassThrough } = await import('./passthrough/passthrough.ts');
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
