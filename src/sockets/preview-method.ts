import type { PictureKind } from '../translate/progress/progress-state.ts';
import { type Json } from '../protocol/json.ts';
import { rulesOf } from '../dialects/dialect.ts';
import type { SocketConnection } from './connection.ts';

/** The original's words for a prompt's `extra_data.preview_method`. Other words are ignored. */
const PROMPT_METHODS = ['default', 'auto', 'latent2rgb', 'taesd', 'none'] as const;

/**
 * Which sockets get sampler previews: all of them (the original's own three words), those that
 * negotiated previews, or none. `default`: those that negotiated previews, and browsers.
 */
export type PreviewMethod = (typeof PROMPT_METHODS)[number] | 'negotiated';

export function previewMethodIn(value: Json | undefined): PreviewMethod | undefined {
  return PROMPT_METHODS.find((word) => word === value);
}

/**
 * True when a socket gets pictures of this kind. The server's `none` wins over the prompt's
 * setting. The settings do not affect results and the previews that a node makes itself.
 */
export function acceptsPicture(
  kind: PictureKind,
  receiver: SocketConnection,
  { server, prompt = 'default' }: { server: PreviewMethod; prompt?: PreviewMethod | undefined },
): boolean {
  if (kind === 'result' || kind === 'own') return true;
  if (server === 'none' || prompt === 'none') return false;
  const isAlways = rulesOf(receiver.dialect).samplerPreviews === 'always';
  if (isAlways || receiver.watches) return true;
  const method = prompt === 'default' ? server : prompt;
  if (method !== 'default' && method !== 'negotiated') return true;
  if (receiver.wantsMetadata()) return true;
  // An original behind a service makes no sampler previews by default: these are the nodes' own.
  return method === 'default' && (receiver.isBrowser || kind === 'unmarked');
}
