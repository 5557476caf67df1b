import { type ServerInfoOptions, serverInfoRoutes } from './server-info.ts';
import { type LogServices, logRoutes } from './logs.ts';
import { type ModelServices, modelRoutes } from './models.ts';
import { objectInfoRoutes } from './object-info.ts';
import { UserObjectInfo } from '../definitions/user-object-info.ts';
import type { FileStore } from '../ledger/ledger.ts';
import type { V1Route } from './routes.ts';
import { type SettingServices, settingRoutes } from './userdata/settings.ts';
import { type UserDataServices, userDataRoutes } from './userdata/userdata.ts';
import { userRoutes } from './userdata/users.ts';

/** Services of the catalog routes. */
export type CatalogServices = SettingServices &
  LogServices &
  UserDataServices &
  ModelServices & { readonly files: FileStore; readonly info: ServerInfoOptions };

/** Routes about the server itself and what it stores for users, other than jobs and their files. */
export function catalogRoutes(services: CatalogServices): readonly V1Route[] {
  return [
    ...objectInfoRoutes({ ...services, userObjectInfo: new UserObjectInfo(services.files) }),
    ...serverInfoRoutes(services.info),
    ...modelRoutes(services),
    ...logRoutes(services),
    ...userRoutes(services),
    ...settingRoutes(services),
    ...userDataRoutes(services),
  ];
}
