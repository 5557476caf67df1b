import { createViewSigner } from '../auth/signed-view.ts';
import type { Config } from '../config/config.ts';
import { createUserDataStore } from '../files/user-data-store.ts';
import { UPLOAD_LIMITS, createUploadQuota } from '../http/upload-quota.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { createSemaphore } from '../lib/concurrency.ts';
import type { FileRouteServices } from '../v1/file-routes.ts';
import type { Upstream } from './upstream-services.ts';
import type { Auth } from './auth.ts';
import type { Store } from './store.ts';

const MAX_DECODERS = 2;

type FileParts = {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly auth: Auth;
  readonly upstream: Upstream;
  readonly now: () => number;
};

/** Files of users: uploads, outputs, and what front ends store. */
export function openFileServices(
  config: Config,
  { store, ledger, auth, upstream, now }: FileParts,
) {
  const { dir } = store;
  const { maxUploadBytes } = config;
  const decodeSlots = createSemaphore(MAX_DECODERS);
  const signer = createViewSigner({ secret: dir.secret, now });
  return {
    names: ledger.files,
    userData: createUserDataStore({ root: dir.userData, quotaBytes: config.userdataQuotaBytes }),
    spoolDir: dir.spool,
    maxUploadBytes,
    /** The services of the v1 routes for uploads and downloads. */
    routes: {
      jobs: upstream.jobs,
      startUpload: upstream.runner.startUpload,
      files: ledger.files,
      view: config.view,
      signer,
      decodeSlots,
      quota: createUploadQuota(UPLOAD_LIMITS),
      // A remote service stores the bytes: here they need not survive a power loss.
      durability: config.upstream.kind === 'remote' ? 'transient' : 'fsync',
      callerOf: auth.keyring.callerOf,
      addresses: auth.addresses,
      spoolDir: dir.spool,
      maxUploadBytes,
      now,
    } satisfies FileRouteServices,
  };
}
