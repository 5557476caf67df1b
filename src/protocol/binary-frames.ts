import { pythonJson } from './python-json.ts';
import type { NodeIds } from './v1.ts';

/** Binary WebSocket frame types of v1; all integers are big-endian. */
export const FRAME_TYPE = { previewImage: 1, text: 3, previewImageWithMetadata: 4 } as const;

/** v1's image format tag in a type 1 frame. */
export const FORMAT_TAG = { 'image/jpeg': 1, 'image/png': 2 } as const;

/** The picture types v1 has a tag for. */
export type PreviewMime = keyof typeof FORMAT_TAG;

/** The JSON part of a type 4 frame. */
export type PreviewMetadata = NodeIds & { readonly image_type: PreviewMime };

/**
 * Detects the format by the bytes. Clients decode by the tag, so the tag must match the bytes, not
 * a label.
 */
export function sniffPreview(image: Uint8Array): PreviewMime | undefined {
  if (image[0] === 0xff && image[1] === 0xd8 && image[2] === 0xff) return 'image/jpeg';
  if (image[0] === 0x89 && image[1] === 0x50 && image[2] === 0x4e && image[3] === 0x47) {
    return 'image/png';
  }
  return undefined;
}

/** Type 1: `u32 1, u32 format, image`; the image starts at byte 8. */
export function previewFrame(image: Uint8Array, mime: PreviewMime): Buffer {
  return Buffer.concat([u32(FRAME_TYPE.previewImage), u32(FORMAT_TAG[mime]), image]);
}

/** Type 3: `u32 3, u32 id length, node id, text`. */
export function textFrame(nodeId: string, text: string): Buffer {
  const id = Buffer.from(nodeId, 'utf8');
  return Buffer.concat([u32(FRAME_TYPE.text), u32(id.length), id, Buffer.from(text, 'utf8')]);
}

/**
 * Type 4: `u32 4, u32 JSON length, JSON as Python writes it, image`. Only for sockets that
 * negotiated it.
 */
export function previewWithMetadataFrame(image: Uint8Array, metadata: PreviewMetadata): Buffer {
  const json = Buffer.from(pythonJson(metadata), 'utf8');
  return Buffer.concat([u32(FRAME_TYPE.previewImageWithMetadata), u32(json.length), json, image]);
}

function u32(value: number): Buffer {
  const buffer = Buffer.allocUnsafe(4);
  buffer.writeUInt32BE(value);
  return buffer;
}
