import { type ServerInfoOptions, serverInfoRoutes } from './boot.ts';
import { type LogDeps, logRoutes } from './log-routes.ts';
import { modelRoutes } from './models.ts';
import { type ObjectInfoDeps, objectInfoRoutes } from './object-info-routes.ts';
import type { V1Route } from './routes.ts';
import { type SettingDeps, settingRoutes } from './settings.ts';
import { type UserDataDeps, userDataRoutes } from './userdata.ts';
import { userRoutes } from './users.ts';

/** What the catalogue needs of the house. */
export type CatalogDeps = SettingDeps & ServerInfoOptions & LogDeps & UserDataDeps & ObjectInfoDeps;

/** What the old API tells about the server and keeps for its users, beside jobs and their files. */
export function catalogRoutes(deps: CatalogDeps): readonly V1Route[] {
  return [
    ...objectInfoRoutes(deps),
    ...serverInfoRoutes(deps),
    ...modelRoutes(deps),
    ...logRoutes(deps),
    ...userRoutes(),
    ...settingRoutes(deps),
    ...userDataRoutes(deps),
  ];
}
