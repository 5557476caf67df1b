import { useEffect, useState } from 'preact/hooks';
import type { FileRef } from '../../src/protocol/v1.ts';
import film from 'icon:film';
import music from 'icon:file-music';
import play from 'icon:play';
import { LOAD_TIMEOUT_MS, address, getBlob, storedKey, viewPath } from './server.ts';
import { tellError } from '../state.ts';
import { Icon } from './ui.tsx';

type Kind = 'video' | 'audio';

const KINDS = [
  ['video', /\.(mp4|m4v|webm|mov|mkv|ogv)$/i],
  ['audio', /\.(mp3|wav|flac|ogg|oga|opus|m4a|aac)$/i],
] as const;

/** `undefined`: the file is neither. */
export function mediaKind({ filename }: FileRef): Kind | undefined {
  return KINDS.find(([, pattern]) => pattern.test(filename))?.[0];
}

/** A picture of the same name, which nodes save beside a video. */
export function posterOf<T extends FileRef>(file: T, pictures: readonly T[]): T | undefined {
  const stem = (name: string): string => name.replace(/\.[^.]*$/, '');
  return pictures.find(
    ({ filename, subfolder }) =>
      stem(filename) === stem(file.filename) && subfolder === file.subfolder,
  );
}

/** Players send no header of the page: this marks their calls. */
const PAGE = { 'holdover-page': '1' };

function sourceOf(file: FileRef): string {
  return address(viewPath(file, PAGE));
}

/** Plays a file in parts as they are needed. */
export function Player({
  of,
  poster,
}: {
  readonly of: FileRef;
  readonly poster?: FileRef | undefined;
}) {
  const { url, isLoading, load } = useSource(of);
  const [hasFailed, setFailed] = useState(false);
  if (hasFailed) {
    return (
      <span class="player is-message">
        <MediaIcon of={of} />
        This browser cannot play it.
      </span>
    );
  }
  if (url === undefined) return <LoadButton of={of} isLoading={isLoading} onClick={load} />;
  const common = { src: url, controls: true, onError: () => setFailed(true) };
  if (mediaKind(of) === 'audio') {
    return <audio class="player" preload="metadata" aria-label={of.filename} {...common} />;
  }
  return (
    <video
      class="player"
      preload="metadata"
      playsInline
      aria-label={of.filename}
      {...(poster && storedKey() === null && { poster: sourceOf(poster) })}
      {...common}
    />
  );
}

/** Returns the address for a player. It carries no key: with one, the file is loaded first. */
function useSource(of: FileRef) {
  const [url, setUrl] = useState(() => (storedKey() === null ? sourceOf(of) : undefined));
  const [isLoading, setLoading] = useState(false);
  useEffect(
    () => () => {
      if (url?.startsWith('blob:') === true) URL.revokeObjectURL(url);
    },
    [url],
  );
  const load = async (): Promise<void> => {
    setLoading(true);
    try {
      setUrl(URL.createObjectURL(await getBlob(viewPath(of), LOAD_TIMEOUT_MS)));
    } catch (error) {
      tellError(error);
    }
    setLoading(false);
  };
  return { url, isLoading, load: () => void load() };
}

function LoadButton({
  of,
  isLoading,
  onClick,
}: {
  readonly of: FileRef;
  readonly isLoading: boolean;
  readonly onClick: () => void;
}) {
  return (
    <button type="button" class="player is-message" disabled={isLoading} onClick={onClick}>
      <Icon shapes={play} size={20} />
      {isLoading ? 'Loading …' : `Play ${of.filename}`}
    </button>
  );
}

/** The first picture of a video, which plays without sound while the pointer is over it. */
export function VideoPicture({ of }: { readonly of: FileRef }) {
  const [hasFailed, setFailed] = useState(false);
  if (storedKey() !== null || hasFailed || mediaKind(of) !== 'video') {
    return (
      <span class="thumbnail">
        <MediaIcon of={of} />
      </span>
    );
  }
  return (
    <span class="thumbnail is-video">
      <video
        src={sourceOf(of)}
        preload="metadata"
        muted
        loop
        playsInline
        tabIndex={-1}
        onError={() => setFailed(true)}
        onPointerEnter={({ currentTarget: video }) => void video.play().catch(() => {})}
        onPointerLeave={({ currentTarget: video }) => video.pause()}
      />
      <Icon shapes={film} />
    </span>
  );
}

function MediaIcon({ of }: { readonly of: FileRef }) {
  return <Icon shapes={mediaKind(of) === 'audio' ? music : film} size={20} />;
}
