import type { Graph } from '../../../src/protocol/v2.ts';

/** Workflows in API format that the client tests send; small, so that a suite stays fast. */

export const LASTING_STEPS = 140;

const GENERATOR = { width: 64, height: 64, feed: 0.055, kill: 0.062 };

/** Grows a picture with progress and previews (node 1), and saves it (node 9). */
export function growing(
  options: { seed?: number; steps?: number; prefix?: string; side?: number } = {},
): Graph {
  const { seed = 7, steps = 12, prefix = 'grown', side = 64 } = options;
  const size = { width: side, height: side };
  return {
    '1': { class_type: 'ReactionDiffusion', inputs: { ...GENERATOR, ...size, seed, steps } },
    '9': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: prefix } },
  } as Graph;
}

/** Runs until a client stops it: small, because a server under test rests longer than it computes a short step. */
export function endless(options: { seed?: number } = {}): Graph {
  return growing({ ...options, steps: 10_000, prefix: 'endless' });
}

/** Takes seconds, most of which a server under test rests: for a test that is to be in the middle of it. */
export function lasting(options: { seed?: number; prefix?: string } = {}): Graph {
  return growing({ ...options, steps: LASTING_STEPS });
}

/** Fails while it runs when the named upload is no picture. */
export function loading(image: string, prefix = 'loaded'): Graph {
  return {
    '3': { class_type: 'LoadImage', inputs: { image } },
    '4': { class_type: 'ImageInvert', inputs: { image: ['3', 0] } },
    '9': { class_type: 'SaveImage', inputs: { images: ['4', 0], filename_prefix: prefix } },
  } as Graph;
}

/** Shows a text. */
export function saying(text: string): Graph {
  return {
    '1': { class_type: 'PrimitiveString', inputs: { value: text } },
    '2': { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
  } as Graph;
}

/** Delivers its picture over the socket only. */
export function streaming(nodeId = 'save_image_websocket_node'): Graph {
  return {
    '1': {
      class_type: 'EmptyImage',
      inputs: { width: 24, height: 16, batch_size: 1, color: 0x336699 },
    },
    [nodeId]: { class_type: 'SaveImageWebsocket', inputs: { images: ['1', 0] } },
  } as Graph;
}

/** One flat picture, saved at once. */
export function flat(
  options: { color?: number; prefix?: string; class_type?: string } = {},
): Graph {
  const { color = 0x204060, prefix = 'flat', class_type = 'SaveImage' } = options;
  const save = class_type === 'PreviewImage' ? {} : { filename_prefix: prefix };
  return {
    '1': { class_type: 'EmptyImage', inputs: { width: 20, height: 12, batch_size: 1, color } },
    '9': { class_type, inputs: { images: ['1', 0], ...save } },
  } as Graph;
}
