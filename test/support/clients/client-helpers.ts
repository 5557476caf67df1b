import sharp from 'sharp';
import { readPngChunks } from '../../../src/nodes/codecs/png-chunks.ts';
import { getJson } from './v1-client.ts';

export const NOT_A_PICTURE = Buffer.from('this is not a picture');

/** Uploads bytes as an input of the user of these headers. */
export async function uploadInput(
  url: string,
  file: { bytes: Uint8Array; name: string; fields?: Record<string, string> },
  headers: Record<string, string> = {},
): Promise<{ name: string; subfolder: string; type: string }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(file.fields ?? {})) form.append(name, value);
  form.append('image', new Blob([Buffer.from(file.bytes)]), file.name);
  const response = await fetch(`${url}/upload/image`, { method: 'POST', body: form, headers });
  return (await response.json()) as { name: string; subfolder: string; type: string };
}

/** A flat PNG. */
export function pngOf(
  colour: { r: number; g: number; b: number } = { r: 200, g: 100, b: 50 },
): Promise<Buffer> {
  return sharp({ create: { width: 30, height: 20, channels: 3, background: colour } })
    .png()
    .toBuffer();
}

/** `png 64x64`, `jpeg 64x64`: what the bytes really are. */
export async function formatOf(bytes: Uint8Array | ArrayBuffer): Promise<string> {
  const { format, width, height } = await sharp(Buffer.from(bytes as ArrayBuffer)).metadata();
  return `${format} ${width}x${height}`;
}

/** The text a PNG carries under this key. */
export function pngText(bytes: Uint8Array, key: string): string | undefined {
  return readPngChunks(bytes)
    .filter(({ type }) => type === 'tEXt')
    .map(({ data }) => Buffer.from(data).toString('latin1'))
    .find((text) => text.startsWith(`${key}\0`))
    ?.slice(key.length + 1);
}

/** The id of the caller's prompt once its job really runs, found as a stranger would: by polling. */
export async function untilRunning(
  url: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const deadline = Date.now() + 15_000;
  while (Date.now() < deadline) {
    const id = (await getJson(`${url}/queue`, headers)).queue_running[0]?.[1];
    const state = id && (await getJson(`${url}/api/job/${id}/status`, headers)).status;
    if (state === 'executing') return id;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('nothing runs');
}

export function interrupt(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}/interrupt`, { method: 'POST', headers });
}

/** The only entry of `/history/{id}`. */
export async function entryOf(
  url: string,
  promptId: string,
  headers: Record<string, string> = {},
): Promise<any> {
  return (await getJson(`${url}/history/${promptId}`, headers))[promptId];
}
