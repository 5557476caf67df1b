import { useEffect, useState } from 'preact/hooks';
import image from 'icon:image';
import file from 'icon:file';
import { call, viewPath } from './server.ts';
import { Icon, useSeen } from './ui.tsx';

type File = { readonly filename: string; readonly subfolder: string; readonly type: string };

const SHOWABLE = /\.(png|jpe?g|webp|gif|tiff?|avif|bmp)$/i;
/** The server draws each one anew. */
const MAX_AT_ONCE = 3;

let running = 0;
const waiting: (() => void)[] = [];

/** Runs the work when fewer than three others run. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
  running++;
  try {
    return await work();
  } finally {
    running--;
    waiting.shift()?.();
  }
}

export function isPicture({ filename }: File): boolean {
  return SHOWABLE.test(filename);
}

/** Object URLs of pictures that were fetched; the oldest are released. */
const MAX_URLS = 400;
const urls = new Map<string, string>();

async function urlOf(path: string): Promise<string> {
  const known = urls.get(path);
  if (known !== undefined) return known;
  const url = await inTurn(async () => {
    const response = await call(path);
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    return URL.createObjectURL(await response.blob());
  });
  urls.set(path, url);
  if (urls.size > MAX_URLS) {
    const [oldest = '', oldestUrl = ''] = urls.entries().next().value ?? [];
    urls.delete(oldest);
    URL.revokeObjectURL(oldestUrl);
  }
  return url;
}

/** A file as a small picture: fetched with the key of the page once it is near the visible part. */
export function Thumbnail({
  of,
  quality = 70,
  full = false,
}: {
  readonly of: File;
  readonly quality?: number;
  readonly full?: boolean;
}) {
  const [ref, isSeen] = useSeen<HTMLSpanElement>();
  const [url, setUrl] = useState<string>();
  const path = viewPath(of, full ? {} : { preview: `webp;${quality}` });
  useEffect(() => {
    setUrl(undefined);
    if (!isSeen || !isPicture(of)) return undefined;
    let isCurrent = true;
    urlOf(path).then(
      (found) => isCurrent && setUrl(found),
      () => {},
    );
    return () => void (isCurrent = false);
  }, [path, isSeen]);
  return (
    <span class="thumbnail" ref={ref}>
      {url === undefined ? (
        <Icon shapes={isPicture(of) ? image : file} size={20} />
      ) : (
        <img src={url} alt={of.filename} />
      )}
    </span>
  );
}

/** Fetches a file with the key of the page and saves it. */
export async function saveFile(path: string, filename: string): Promise<void> {
  const response = await call(path, { timeoutMs: 600_000 });
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  saveBlob(await response.blob(), filename);
}

export function saveBlob(blob: Blob, filename: string): void {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
