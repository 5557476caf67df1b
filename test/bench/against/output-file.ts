import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 50;
const POLLS = 600;

type Saved = {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
};

/** Has a picture loaded and saved as an output; where `GET` finds it. */
export async function saveOutput(url: string, png: Uint8Array): Promise<string> {
  const form = new FormData();
  form.set('image', new Blob([Buffer.from(png)]), 'noise.png');
  const { name } = await answered<{ name: string }>(`${url}/upload/image`, form);
  const prompt = {
    '1': { class_type: 'LoadImage', inputs: { image: name } },
    '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'noise' } },
  };
  const body = JSON.stringify({ prompt });
  const { prompt_id: id } = await answered<{ prompt_id: string }>(`${url}/prompt`, body);
  const { filename, subfolder, type } = await saved(url, id);
  return `/view?${new URLSearchParams({ filename, subfolder, type }).toString()}`;
}

async function answered<T>(url: string, body: FormData | string): Promise<T> {
  const answer = await fetch(url, { method: 'POST', body });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}

async function saved(url: string, promptId: string): Promise<Saved> {
  for (let left = POLLS; left > 0; left--) {
    const history = (await (await fetch(`${url}/history/${promptId}`)).json()) as Record<
      string,
      { readonly outputs: Record<string, { readonly images?: readonly Saved[] }> }
    >;
    const image = history[promptId]?.outputs['2']?.images?.[0];
    if (image !== undefined) return image;
    await delay(POLL_MS);
  }
  throw new Error(`prompt ${promptId} saved nothing`);
}
