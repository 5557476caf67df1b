import type { AssetCalls } from '../job-engine.ts';
import { rm } from 'node:fs/promises';
import { openContent } from '../remote-files/content.ts';
import { withAccount } from '../remote-calls/accounts.ts';
import type { RemoteServices } from './remote-services.ts';

export function createAssetCalls(services: RemoteServices): AssetCalls {
  const { accounts, assets, uploadPaths } = services;
  const forAccount = withAccount(accounts);
  return {
    async createAsset(caller, upload) {
      try {
        const { filePath, file } = upload;
        const uploadPath = uploadPaths.pathOf({ user: caller.user, filePath, hash: file.hash });
        return await forAccount(caller, (account) =>
          assets.create(account, { ...upload, filePath: uploadPath }),
        );
      } finally {
        // Neither a sent nor a refused upload needs its file any more.
        await rm(upload.file.path, { force: true });
      }
    },
    assetFromHash(caller, request) {
      const { filePath, hash } = request;
      const uploadPath = filePath && {
        filePath: uploadPaths.pathOf({ user: caller.user, filePath, hash }),
      };
      return forAccount(caller, (account) =>
        assets.fromHash(account, { ...request, ...uploadPath }),
      );
    },
    hasBlob: (caller, hash) => forAccount(caller, (account) => assets.hasBlob(account, hash)),
    asset: (caller, assetId) => forAccount(caller, (account) => assets.get(account, assetId)),
    deleteAsset: (caller, assetId) =>
      forAccount(caller, (account) => assets.remove(account, assetId)),
    content: (caller, assetId, range) =>
      forAccount(caller, (account) =>
        openContent(services, { account, assetId, ...(range && { range }) }),
      ),
  };
}
