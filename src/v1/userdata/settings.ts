import type Koa from 'koa';
import type { BodyReader } from '../../http/json-body.ts';
import type { SettingStore } from '../../ledger/ledger.ts';
import { isJsonObject, stringifyJson } from '../../protocol/json.ts';
import { readJson } from '../routing/body.ts';
import { rulesFor } from '../../dialects/dialect.ts';
import {
  V1Error,
  emptyError,
  plainError,
  sendEmpty,
  requirePrintable,
} from '../../dialects/errors.ts';
import { sendJsonPieces } from '../../http/json-stream.ts';
import { routesFor } from '../routes.ts';

/** Services of the settings routes. */
export type SettingServices = { readonly settings: SettingStore; readonly bodies: BodyReader };

/** Limits of one user's settings; front ends have a few hundred, of a few characters each. */
const SETTINGS_LIMIT = { count: 10_000, chars: 16 * 1024 * 1024 } as const;

/** A user's settings: one flat object of JSON values, merged shallowly. */
export const settingRoutes = routesFor<SettingServices>({
  async 'GET /settings'({ settings }, { ctx, caller }) {
    await sendAll(ctx, await settings.all(caller.user));
  },
  /** The original answers the bare value, `null` when there is none. */
  async 'GET /settings/:id'({ settings }, { ctx, caller, params }) {
    const settingsOfUser = await settings.all(caller.user);
    const { id = '' } = params;
    const text = Object.hasOwn(settingsOfUser, id) ? settingsOfUser[id] : undefined;
    if (text !== undefined) return await sendOne(ctx, text);
    if (rulesFor(ctx).settings === 'wrapped') throw emptyError(404, 'There is no such setting.');
    await sendText(ctx, 'null');
  },
  async 'POST /settings'(services, { ctx, caller }) {
    const given = await readJson(ctx, services.bodies);
    if (!isJsonObject(given)) {
      throw new V1Error(400, plainError('invalid_settings', 'Settings are a JSON object.'));
    }
    // Checked before each setting is checked and written: a body may have 500,000.
    if (Object.keys(given).length > SETTINGS_LIMIT.count) throw settingsFull();
    const texts = Object.entries(given).map(
      ([id, value]) => [requirePrintable(id, 'id'), stringifyJson(value)] as const,
    );
    const merged = await saveSettings(services, caller.user, Object.fromEntries(texts));
    if (rulesFor(ctx).settings === 'wrapped') await sendAll(ctx, merged);
    else sendEmpty(ctx);
  },
  async 'POST /settings/:id'(services, { ctx, caller, params }) {
    const value = await readJson(ctx, services.bodies);
    const { id = '' } = params;
    const text = stringifyJson(value);
    await saveSettings(services, caller.user, Object.fromEntries([[id, text]]));
    if (rulesFor(ctx).settings === 'wrapped') await sendOne(ctx, text);
    else sendEmpty(ctx);
  },
});

function sendAll(
  ctx: Koa.Context,
  settingsOfUser: { readonly [id: string]: string },
): Promise<void> {
  const entries = Object.entries(settingsOfUser);
  const members = entries.map(([id, text]) => `${JSON.stringify(id)}:${text}`);
  return sendText(ctx, `{${members.join(',')}}`);
}

/** A value may have megabytes: to space all of it at once would delay the other calls. */
function sendText(ctx: Koa.Context, jsonText: string): Promise<void> {
  return sendJsonPieces(ctx, [jsonText].values());
}

function sendOne(ctx: Koa.Context, text: string): Promise<void> {
  return sendText(ctx, rulesFor(ctx).settings === 'wrapped' ? `{"value":${text}}` : text);
}

/**
 * Saves settings and returns all of them. They are read and sent at once, and often: large values
 * belong in the user data.
 */
async function saveSettings(
  { settings }: SettingServices,
  user: string,
  changes: { readonly [id: string]: string },
): Promise<{ readonly [id: string]: string }> {
  const merged = { ...(await settings.all(user)), ...changes };
  const sizes = Object.entries(merged).map(([id, text]) => id.length + text.length);
  const chars = sizes.reduce((sum, size) => sum + size, 0);
  if (sizes.length > SETTINGS_LIMIT.count || chars > SETTINGS_LIMIT.chars) {
    throw settingsFull();
  }
  await settings.merge(user, changes);
  return merged;
}

function settingsFull(): V1Error {
  return new V1Error(507, plainError('settings_full', 'There is no room for more settings.'));
}
