import { useEffect, useState } from 'preact/hooks';
import { Semaphore } from 'async-mutex';
import type { FileRef } from '../../src/protocol/v1.ts';
import image from 'icon:image';
import file from 'icon:file';
import { LOAD_TIMEOUT_MS, getBlob, viewPath } from './server.ts';
import { useIsResting } from './scrolling.ts';
import { useSeen } from './screen.ts';
import { Icon } from './ui.tsx';
import { identity } from '../state.ts';

const SHOWABLE = /\.(png|jpe?g|webp|gif|tiff?|avif|bmp)$/i;
/** The server draws each picture anew, so few are fetched at a time. */
const drawing = new Semaphore(3);

export function isPicture({ filename }: FileRef): boolean {
  return SHOWABLE.test(filename);
}

/** Object URLs of pictures that were fetched; the oldest are released. */
const MAX_URLS = 400;
const urls = new Map<string, string>();

/** The files of another key may have the same names. */
function urlName(path: string): string {
  return `${identity.peek()} ${path}`;
}

/** Fetches a picture in its turn. `undefined`: it is not wanted any more by then. */
async function urlOf(path: string, isWanted: () => boolean): Promise<string | undefined> {
  const name = urlName(path);
  const known = urls.get(name);
  if (known !== undefined) return known;
  const blob = await drawing.runExclusive(async () => isWanted() && getBlob(path));
  if (blob === false) return undefined;
  const url = URL.createObjectURL(blob);
  urls.set(name, url);
  if (urls.size > MAX_URLS) {
    const [oldest = '', oldestUrl = ''] = urls.entries().next().value ?? [];
    urls.delete(oldest);
    URL.revokeObjectURL(oldestUrl);
  }
  return url;
}

type ThumbnailProps = { readonly of: FileRef; readonly quality?: number; readonly full?: boolean };

/** A file as a small picture: fetched with the key of the page once it is near the visible part. */
export function Thumbnail(props: ThumbnailProps) {
  const [ref, isSeen] = useSeen<HTMLSpanElement>();
  return isSeen ? (
    <ShownThumbnail {...props} />
  ) : (
    <span class="thumbnail" ref={ref}>
      <FileIcon of={props.of} />
    </span>
  );
}

/** A file as a small picture, fetched as soon as the list around it rests. */
export function ShownThumbnail({ of, quality = 70, full = false }: ThumbnailProps) {
  const path = viewPath(of, full ? {} : { preview: `webp;${quality}` });
  const isResting = useIsResting();
  const [url, setUrl] = useState(() => urls.get(urlName(path)));
  useEffect(() => {
    setUrl(urls.get(urlName(path)));
    if (!isResting || !isPicture(of)) return undefined;
    let isCurrent = true;
    urlOf(path, () => isCurrent).then(
      (found) => isCurrent && setUrl(found),
      () => {},
    );
    return () => void (isCurrent = false);
  }, [path, isResting]);
  return (
    <span class="thumbnail">
      {url === undefined ? (
        <FileIcon of={of} />
      ) : (
        <img src={url} alt={of.filename} decoding="async" />
      )}
    </span>
  );
}

function FileIcon({ of }: { readonly of: FileRef }) {
  return <Icon shapes={isPicture(of) ? image : file} size={20} />;
}

/** Fetches a file with the key of the page and saves it. */
export async function saveFile(path: string, filename: string): Promise<void> {
  saveBlob(await getBlob(path, LOAD_TIMEOUT_MS), filename);
}

export function saveBlob(blob: Blob, filename: string): void {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
