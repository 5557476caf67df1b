import { createViewSigner } from '../auth/signed-view.ts';
import type { Config } from '../config/config.ts';
import { createBucketUserData } from '../files/bucket-user-data.ts';
import { AssetCatalog } from '../files/asset-catalog.ts';
import { type UserDataStore, createUserDataStore } from '../files/user-data-store.ts';
import { createUploadLimit } from '../http/upload-limit.ts';
import type { FormLimits } from '../http/received-form.ts';
import type { FileStore, Ledger } from '../ledger/ledger.ts';
import { openPictures } from '../files/pictures.ts';
import type { Logger } from '../observability/log.ts';
import type { FileRouteServices } from '../v1/file-routes.ts';
import type { UpstreamServices } from './upstream.ts';
import type { Auth } from './auth.ts';
import type { Store } from './store.ts';
import { headersElsewhere } from '../http/file-headers.ts';
import type { Blobs } from '../blobs/blobs.ts';

/** Opens the place of user data: the data directory, or the bucket with the other files. */
function openUserData(
  { userdataQuotaBytes: quotaBytes }: Config,
  { dir, files }: Store,
): UserDataStore {
  if (files.bucket) return createBucketUserData({ objects: files.bucket.objects, quotaBytes });
  return createUserDataStore({ root: dir.userData, quotaBytes });
}

type FileParts = {
  readonly store: Store;
  readonly ledger: Ledger;
  readonly auth: Auth;
  readonly upstream: UpstreamServices;
  readonly log: Logger;
  readonly now: () => number;
};

export type FileServices = {
  readonly names: FileStore;
  readonly userData: UserDataStore;
  readonly uploads: FormLimits;
  readonly catalog: AssetCatalog;
  /** The services of the v1 routes for uploads and downloads. */
  readonly routes: FileRouteServices;
  close(): Promise<void>;
};

/** The files of users: uploads, outputs, and files that front ends store. */
export function openFileServices(
  config: Config,
  { store, ledger, auth, upstream, log, now }: FileParts,
): FileServices {
  const { dir } = store;
  const pictures = openPictures(log);
  // Otherwise a link leads to this server: callers may not reach the bucket.
  const leadsToBucket = config.view === 'redirect' && config.upstream.kind === 'embedded';
  const linkToStored = leadsToBucket && createStoredLinks(ledger, store.files.blobs, now);
  const uploads = formLimitsOf(config, store, upstream);
  const { jobs } = upstream;
  const catalog = new AssetCatalog({ jobs, files: ledger.files, labels: ledger.assetLabels, now });
  return {
    names: ledger.files,
    userData: openUserData(config, store),
    uploads,
    catalog,
    close: () => pictures.close(),
    routes: {
      jobs,
      catalog: config.assets ? catalog : undefined,
      uploads,
      files: ledger.files,
      view: config.view,
      links: {
        signer: createViewSigner({ secret: dir.secret, now }),
        addresses: auth.addresses,
        callerOf: auth.keyring.callerOf,
        ...(linkToStored && { linkToStored }),
      },
      pictures,
      now,
    },
  };
}

function formLimitsOf(config: Config, store: Store, { runner }: UpstreamServices): FormLimits {
  return {
    spoolDir: store.dir.spool,
    // A remote service or a bucket stores the bytes, so they need not survive a power cut here.
    durability: config.upstream.kind === 'remote' || store.files.bucket ? 'none' : 'fsync',
    maxUploadBytes: config.maxUploadBytes,
    limitUploads: createUploadLimit(),
    startUpload: runner.startUpload,
  };
}

type LinkToStored = NonNullable<FileRouteServices['links']['linkToStored']>;

/** Makes links to the objects of a bucket, for callers that `--view redirect` sends there. */
function createStoredLinks(
  ledger: Ledger,
  blobs: Blobs,
  now: () => number,
): LinkToStored | undefined {
  const { linkTo } = blobs;
  if (linkTo === undefined) return undefined;
  return async ({ user }, { row, fetchDest }) => {
    const headers = headersElsewhere(row, fetchDest);
    const asset = await ledger.assets.get(row.assetId);
    const isThere = asset?.user === user && (asset.expiresAtMs ?? Infinity) > now();
    return headers && isThere ? await linkTo(asset.hash, headers) : undefined;
  };
}
