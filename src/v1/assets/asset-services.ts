import type { AssetCatalog } from '../../files/asset-catalog.ts';
import type { BodyReader } from '../../http/json-body.ts';
import type { UploadServices } from '../files/upload.ts';

/** Services of the assets API. */
export type AssetServices = Omit<UploadServices, 'catalog'> & {
  readonly bodies: BodyReader;
  readonly catalog: AssetCatalog;
};
