import type { IncomingMessage } from 'node:http';
import type Koa from 'koa';
import type { ModelRouter } from '../router/router.ts';
import { RateLimiter } from '../lib/rate-limiter.ts';
import { externalJobOfEngine, externalJobOfService } from '../prompts/external-job.ts';
import { findJobId, withPromptIds } from '../prompts/find-by-prompt-id.ts';
import type { Prompts } from '../prompts/prompts.ts';
import type { JobCall } from '../passthrough/job-call-observer.ts';
import type { PassThrough } from '../passthrough/pass-through.ts';
import { createV2Routes } from '../v2/routes.ts';
import { createContentSigner } from '../v2/link-rewriter.ts';
import type { Services } from './services.ts';

/** The v2 routes of the embedded engine. Those of a remote service are passed through. */
export function mountEmbeddedV2(services: Services): Koa.Middleware[] {
  const { config, upstream, auth, bodies, prompts } = services;
  const { store, ledger, files } = services.storage;
  if (config.upstream.kind !== 'embedded') return [];
  const { externalJobs, markJobFetched } = prompts.life;
  return [
    createV2Routes({
      uploads: { ...files.uploads, durability: 'fsync' },
      bodies,
      jobs: withPromptIds(upstream.runner.jobs, { livePrompts: prompts.live, ledger }),
      log: services.observers.log,
      links: {
        addresses: auth.addresses,
        signer: createContentSigner({ secret: store.dir.secret, now: Date.now }),
      },
      callers: {
        identify: (ctx) => auth.identifyAccepted(ctx.req),
        rate: { limiter: new RateLimiter(Date.now), perMinute: config.v2RequestsPerMinute },
      },
      observer: {
        onSubmit: (submitted) => externalJobs.importJob(externalJobOfEngine(submitted)),
        onFetch: markJobFetched,
      },
    }),
  ];
}

/** The models that run here. Those of a remote service are passed through. */
export async function openEmbeddedRouter(services: Services): Promise<ModelRouter | undefined> {
  const { config, auth, upstream, bodies } = services;
  const { store, ledger } = services.storage;
  if (config.upstream.kind !== 'embedded') return undefined;
  const { openEmbeddedModels } = await import('../router/open-models.ts');
  return openEmbeddedModels({
    files: { jobs: upstream.jobs, spoolDir: store.dir.spool },
    records: { ledger, isShared: store.links !== undefined },
    log: services.observers.log,
    now: Date.now,
    cursorSecret: store.dir.secret,
    requests: { bodies, addresses: auth.addresses },
    limits: config.models.limits,
    access: {
      callerOf: (key) => auth.identifyAccepted({ headers: { 'x-api-key': key }, url: '' }),
      keysFile: config.models.keysFile,
    },
  });
}

/** The v2 and model routes of a remote service, passed through unchanged. */
export async function openPassThrough(services: Services): Promise<PassThrough | undefined> {
  const { config, auth, prompts, storage } = services;
  const { upstream } = config;
  if (upstream.kind === 'embedded') return undefined;
  const { PassThrough } = await import('../passthrough/pass-through.ts');
  const { url: baseUrl, key, limits } = upstream;
  const sources = { livePrompts: prompts.live, ledger: storage.ledger };
  return new PassThrough({
    baseUrl,
    key,
    localToken: config.localToken,
    authenticate: (request: IncomingMessage) => auth.authenticate(request),
    jobIdOf: (user, id) => findJobId(sources, user, id),
    log: services.observers.log,
    limits,
    onJobCall(observed) {
      if (observed.kind === 'submitted')
        services.upstream.runner.noteSubmitted?.(observed.caller, observed.job);
      observeJobCall(prompts.life, observed);
    },
  });
}

/** Updates the v1 view of a job that a caller submits, cancels or reads through v2. */
function observeJobCall({ externalJobs, markJobFetched }: Prompts, observed: JobCall): void {
  if (observed.kind === 'fetched') return markJobFetched(observed);
  if (observed.kind === 'cancelled') {
    return void externalJobs.recordCancel(observed.caller, observed.jobId);
  }
  void externalJobOfService(observed).then(
    (externalJob) => externalJob && externalJobs.importJob(externalJob),
  );
}
