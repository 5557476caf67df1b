/** A picture frame of the v1 WebSocket: type 1 names a format, type 4 brings JSON along. */
const PREVIEW = 1;
const PREVIEW_WITH_METADATA = 4;
const MIME = { 1: 'image/jpeg', 2: 'image/png' };

/**
 * The picture in a binary frame, and whose it is if the frame says so; undefined for other frames.
 * @param {ArrayBuffer} buffer
 * @returns {{ promptId: string | undefined, picture: Blob } | undefined}
 */
export function readPicture(buffer) {
  if (buffer.byteLength < 8) return undefined;
  const view = new DataView(buffer);
  const kind = view.getUint32(0);
  if (kind === PREVIEW) {
    const type = MIME[view.getUint32(4)];
    return type && { promptId: undefined, picture: new Blob([buffer.slice(8)], { type }) };
  }
  if (kind !== PREVIEW_WITH_METADATA) return undefined;
  const end = 8 + view.getUint32(4);
  if (end > buffer.byteLength) return undefined;
  const about = readJson(new TextDecoder().decode(buffer.slice(8, end)));
  const type = Object.values(MIME).find((known) => known === about?.image_type);
  if (!type || typeof about.prompt_id !== 'string') return undefined;
  return { promptId: about.prompt_id, picture: new Blob([buffer.slice(end)], { type }) };
}

/** @param {string} text */
export function readJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
