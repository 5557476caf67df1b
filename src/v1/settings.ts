import type { BodyReader } from '../http/json-body.ts';
import type { SettingStore } from '../ledger/ledger.ts';
import { isJsonObject, stringifyJson } from '../wire/json.ts';
import { readJson } from './body.ts';
import { V1Error, plainError, sendEmpty } from './errors.ts';
import { sendJsonText } from './json-text.ts';
import { printable } from './printable.ts';
import type { V1Request, V1Route } from './routes.ts';

/** What the settings need of the house. */
export type SettingDeps = { readonly settings: SettingStore; readonly bodies: BodyReader };

/** Of one user; front ends have a few hundred, of a few characters each. */
const MOST_SETTINGS = { count: 10_000, chars: 16 * 1024 * 1024 } as const;

/** A user's settings: one flat object of JSON values, merged shallowly. */
export function settingRoutes(deps: SettingDeps): readonly V1Route[] {
  return [
    { method: 'GET', path: '/settings', handle: (request) => all(deps, request) },
    { method: 'GET', path: '/settings/:id', handle: (request) => one(deps, request) },
    { method: 'POST', path: '/settings', handle: (request) => merge(deps, request) },
    { method: 'POST', path: '/settings/:id', handle: (request) => put(deps, request) },
  ];
}

async function all({ settings }: SettingDeps, { ctx, caller }: V1Request): Promise<void> {
  const entries = Object.entries(await settings.all(caller.user));
  const members = entries.map(([id, text]) => `${JSON.stringify(id)}:${text}`);
  sendJsonText(ctx, `{${members.join(',')}}`);
}

/** v1 answers the bare value, `null` when there is none. */
async function one({ settings }: SettingDeps, { ctx, caller, params }: V1Request): Promise<void> {
  const known = await settings.all(caller.user);
  const { id = '' } = params;
  sendJsonText(ctx, Object.hasOwn(known, id) ? (known[id] ?? 'null') : 'null');
}

async function merge(deps: SettingDeps, { ctx, caller }: V1Request): Promise<void> {
  const given = await readJson(ctx, deps.bodies);
  if (!isJsonObject(given)) {
    throw new V1Error(400, plainError('invalid_settings', 'Settings are a JSON object.'));
  }
  const texts = Object.entries(given).map(
    ([id, value]) => [printable(id, 'id'), stringifyJson(value)] as const,
  );
  await keep(deps, caller.user, Object.fromEntries(texts));
  sendEmpty(ctx);
}

async function put(deps: SettingDeps, { ctx, caller, params }: V1Request): Promise<void> {
  const value = await readJson(ctx, deps.bodies);
  const { id = '' } = params;
  await keep(deps, caller.user, Object.fromEntries([[id, stringifyJson(value)]]));
  sendEmpty(ctx);
}

/** They are read and sent as a whole, again and again: what is large belongs to the user data. */
async function keep(
  { settings }: SettingDeps,
  user: string,
  changes: { readonly [id: string]: string },
): Promise<void> {
  const after = { ...(await settings.all(user)), ...changes };
  const sizes = Object.entries(after).map(([id, text]) => id.length + text.length);
  const chars = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.length > MOST_SETTINGS.count || chars > MOST_SETTINGS.chars) {
    throw new V1Error(507, plainError('settings_full', 'There is no room for more settings.'));
  }
  await settings.merge(user, changes);
}
