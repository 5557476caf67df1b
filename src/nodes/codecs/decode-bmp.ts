import { refuseTooManyPixels, type Picture } from './decode-picture.ts';

/** Decodes a Windows bitmap, which sharp cannot. */
export async function decodeBmp(bytes: Uint8Array): Promise<Picture> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  refuseTooManyPixels(view.getUint32(18, true) * Math.abs(view.getInt32(22, true)));
  const { decode } = await import('@cwasm/nsbmp');
  const { width, height, data } = decode(bytes);
  const rgba = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { width, height, hasAlpha: false, channels: 4, bytes: rgba };
}
