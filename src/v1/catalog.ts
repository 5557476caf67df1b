import { type ServerInfoOptions, serverInfoRoutes } from './server-info.ts';
import { type LogServices, logRoutes } from './logs.ts';
import { modelRoutes } from './models.ts';
import { type ObjectInfoServices, objectInfoRoutes } from './object-info.ts';
import type { V1Route } from './routes.ts';
import { type SettingServices, settingRoutes } from './userdata/settings.ts';
import { type UserDataServices, userDataRoutes } from './userdata/userdata.ts';
import { userRoutes } from './userdata/users.ts';

/** What the catalogue needs of the house. */
export type CatalogServices = SettingServices &
  ServerInfoOptions &
  LogServices &
  UserDataServices &
  ObjectInfoServices;

/** What the old API tells about the server and keeps for its users, beside jobs and their files. */
export function catalogRoutes(services: CatalogServices): readonly V1Route[] {
  return [
    ...objectInfoRoutes(services),
    ...serverInfoRoutes(services),
    ...modelRoutes(services),
    ...logRoutes(services),
    ...userRoutes(),
    ...settingRoutes(services),
    ...userDataRoutes(services),
  ];
}
