import { type ServerInfoOptions, serverInfoRoutes } from './server-info.ts';
import { type LogServices, logRoutes } from './logs.ts';
import { modelRoutes } from './models.ts';
import { type ObjectInfoServices, objectInfoRoutes } from './object-info.ts';
import type { V1Route } from './routes.ts';
import { type SettingServices, settingRoutes } from './userdata/settings.ts';
import { type UserDataServices, userDataRoutes } from './userdata/userdata.ts';
import { userRoutes } from './userdata/users.ts';

/** Services of the catalog routes. */
export type CatalogServices = SettingServices &
  LogServices &
  UserDataServices &
  ObjectInfoServices & { readonly info: ServerInfoOptions };

/** Routes about the server itself and what it stores for users, other than jobs and their files. */
export function catalogRoutes(services: CatalogServices): readonly V1Route[] {
  return [
    ...objectInfoRoutes(services),
    ...serverInfoRoutes(services.info),
    ...modelRoutes(services),
    ...logRoutes(services),
    ...userRoutes(services),
    ...settingRoutes(services),
    ...userDataRoutes(services),
  ];
}
