import type { PictureKind } from '../translate/progress-state.ts';
import { type Json } from '../protocol/json.ts';
import { rulesOf } from '../dialects/dialect.ts';
import type { SocketConnection } from './connection.ts';

/**
 * The sockets that are sent previews of samplers: all of them (the original's own three words), those
 * that negotiated them, none; `default`: those that negotiated them and those a browser opened.
 */
export type PreviewMethod = 'default' | 'auto' | 'latent2rgb' | 'taesd' | 'negotiated' | 'none';

/** The words of the original for a prompt's `extra_data.preview_method`; any other says nothing. */
const PROMPT_METHODS = [
  'default',
  'auto',
  'latent2rgb',
  'taesd',
  'none',
] as const satisfies PreviewMethod[];

export function previewMethodIn(value: Json | undefined): PreviewMethod | undefined {
  return PROMPT_METHODS.find((word) => word === value);
}

type Receiver = Pick<SocketConnection, 'dialect' | 'watches' | 'isBrowser' | 'wantsMetadata'>;

/**
 * Whether a socket is sent pictures of this kind. `none` of the server holds whatever the prompt
 * asks for; results, and previews a node sends by itself, are no matter of settings.
 */
export function acceptsPicture(
  kind: PictureKind,
  receiver: Receiver,
  { server, prompt = 'default' }: { server: PreviewMethod; prompt?: PreviewMethod | undefined },
): boolean {
  if (kind !== 'sampler') return true;
  if (server === 'none' || prompt === 'none') return false;
  const isAlways = rulesOf(receiver.dialect).samplerPreviews === 'always';
  if (isAlways || receiver.watches) return true;
  return ACCEPTS[prompt === 'default' ? server : prompt](receiver);
}

const acceptAlways = (): boolean => true;
const negotiated = (receiver: Receiver): boolean => receiver.wantsMetadata();

const ACCEPTS = {
  default: (receiver) => receiver.isBrowser || negotiated(receiver),
  auto: acceptAlways,
  latent2rgb: acceptAlways,
  taesd: acceptAlways,
  negotiated,
  none: () => false,
} as const satisfies Record<PreviewMethod, (receiver: Receiver) => boolean>;
