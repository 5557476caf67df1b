import type { DialectRules } from '../../dialects/dialect.ts';
import { V1Error, plainError } from '../../dialects/errors.ts';
import type { Rendering } from '../../files/pictures.ts';

/** How a channel is named in a query. */
export type ChannelRule = Pick<DialectRules, 'alphaChannel'>;

const DEFAULT_QUALITY = 90;
const QUALITY_TOO_HIGH = 'The quality in preview must be 100 or less.';

/**
 * Reads `preview` and `channel` as v1 does. Unknown formats are WEBP; the last part of `preview` is
 * the quality if it is a number; a channel with an `a` in its name needs a format with alpha.
 * `undefined`: the file is sent unchanged.
 */
export function readRendering(
  query: URLSearchParams,
  { alphaChannel }: ChannelRule,
): Rendering | undefined {
  const channel = query.get('channel') ?? '';
  const preview = query.get('preview');
  if (preview !== null) return readPreview(preview, channel);
  if (channel === 'rgb') return { as: 'rgb' };
  const isAlpha = channel === 'a' || (alphaChannel === 'a-or-alpha' && channel === 'alpha');
  return isAlpha ? { as: 'alpha' } : undefined;
}

function readPreview(preview: string, channel: string): Rendering {
  const parts = preview.split(';');
  const last = parts.at(-1) ?? '';
  const quality = /^\d+$/.test(last) ? Number(last) : DEFAULT_QUALITY;
  if (quality > 100) throw new V1Error(400, plainError('invalid_preview', QUALITY_TOO_HIGH));
  const format = parts[0] === 'jpeg' && !channel.includes('a') ? 'jpeg' : 'webp';
  const opaque = format === 'jpeg' || channel === 'rgb';
  return { as: 'preview', format, quality: Math.max(quality, 1), opaque };
}
