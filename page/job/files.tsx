import type { RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { JobFile, JobInput } from '../../src/console/api-types.ts';
import chevronLeft from 'icon:chevron-left';
import chevronRight from 'icon:chevron-right';
import download from 'icon:download';
import external from 'icon:external-link';
import { Player, mediaKind, posterOf } from '../lib/media.tsx';
import { Thumbnail, isPicture, saveFile } from '../lib/pictures.tsx';
import { address, storedKey, viewPath } from '../lib/server.ts';
import { Button, Icon } from '../lib/ui.tsx';
import { tellError } from '../state.ts';

type AnyFile = JobFile | JobInput;

function save(file: AnyFile): void {
  saveFile(viewPath(file), file.filename).catch(tellError);
}

/** Files with their pictures; one opens over the page. */
export function FileList({ files }: { readonly files: readonly AnyFile[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const pictures = files.filter(isPicture);
  const [shown, setShown] = useState<number>();
  const open = (file: AnyFile): void => {
    setShown(pictures.indexOf(file));
    dialog.current?.showModal();
  };
  return (
    <>
      <ul class="files">
        {files.map((file, at) => (
          <File
            key={`${at} ${file.filename}`}
            file={file}
            poster={posterOf(file, pictures)}
            onOpen={() => open(file)}
          />
        ))}
      </ul>
      <ViewerDialog dialog={dialog} files={pictures} shown={shown} onShow={setShown} />
    </>
  );
}

type FileProps = {
  readonly file: AnyFile;
  readonly poster: AnyFile | undefined;
  readonly onOpen: () => void;
};

function File({ file, poster, onOpen }: FileProps) {
  const { filename, subfolder } = file;
  return (
    <li class="file">
      {isPicture(file) ? (
        <button type="button" aria-label={`Open ${filename}`} onClick={onOpen}>
          <Thumbnail of={file} quality={85} />
        </button>
      ) : mediaKind(file) === undefined ? (
        <FileLink file={file}>
          <Thumbnail of={file} />
        </FileLink>
      ) : (
        <Player of={file} poster={poster} />
      )}
      <span class="file-name" title={filename}>
        <bdi>{subfolder === '' ? filename : `${subfolder}/${filename}`}</bdi>
        <small>node {file.node}</small>
      </span>
      <Button
        icon={download}
        look="is-icon"
        title="Download"
        label={`Download ${filename}`}
        onClick={() => save(file)}
      />
    </li>
  );
}

/** Opens a file in a tab of its own. An address carries no key: with one, the file is saved. */
function FileLink({
  file,
  children,
}: {
  readonly file: AnyFile;
  readonly children: preact.ComponentChildren;
}) {
  const { filename } = file;
  if (storedKey() !== null) {
    return (
      <button type="button" aria-label={`Save ${filename}`} onClick={() => save(file)}>
        {children}
      </button>
    );
  }
  return (
    <a
      href={address(viewPath(file))}
      target="_blank"
      rel="noopener"
      aria-label={`Open ${filename} in a new tab`}
    >
      {children}
    </a>
  );
}

/** Shows one picture at a time; the arrow keys go to the one before and after. */
function ViewerDialog({
  dialog,
  files,
  shown,
  onShow,
}: {
  readonly dialog: RefObject<HTMLDialogElement | null>;
  readonly files: readonly AnyFile[];
  readonly shown: number | undefined;
  readonly onShow: (at: number | undefined) => void;
}) {
  return (
    <dialog
      ref={dialog}
      class="viewer"
      aria-label="Picture"
      onClose={() => onShow(undefined)}
      onKeyDown={(event) => {
        const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
        const next = (shown ?? 0) + step;
        if (step !== 0 && files[next] !== undefined) onShow(next);
      }}
    >
      {shown !== undefined && (
        <Viewer
          files={files}
          shown={shown}
          onShow={onShow}
          onClose={() => dialog.current?.close()}
        />
      )}
    </dialog>
  );
}

type StepsProps = {
  readonly files: readonly AnyFile[];
  readonly shown: number;
  readonly onShow: (at: number) => void;
};

/** One picture in its full size. */
function Viewer({ onClose, ...steps }: StepsProps & { readonly onClose: () => void }) {
  const { files, shown } = steps;
  const file = files[shown];
  if (file === undefined) return null;
  return (
    <>
      <header>
        <span class="file-name">
          <bdi>{file.filename}</bdi>
          {files.length > 1 && (
            <small>
              {shown + 1} of {files.length}
            </small>
          )}
        </span>
        {files.length > 1 && <Steps {...steps} />}
        {storedKey() === null && <TabLink file={file} />}
        <Button
          icon={download}
          look="is-icon"
          label={`Download ${file.filename}`}
          onClick={() => save(file)}
        />
        <Button look="is-small" onClick={onClose}>
          Close
        </Button>
      </header>
      <Thumbnail key={shown} of={file} full />
    </>
  );
}

function Steps({ files, shown, onShow }: StepsProps) {
  return (
    <>
      <Button
        icon={chevronLeft}
        look="is-icon"
        label="Previous picture"
        disabled={shown === 0}
        onClick={() => onShow(shown - 1)}
      />
      <Button
        icon={chevronRight}
        look="is-icon"
        label="Next picture"
        disabled={shown === files.length - 1}
        onClick={() => onShow(shown + 1)}
      />
    </>
  );
}

function TabLink({ file }: { readonly file: AnyFile }) {
  return (
    <a
      class="button is-icon"
      href={address(viewPath(file))}
      target="_blank"
      rel="noopener"
      aria-label="Open in a new tab"
    >
      <Icon shapes={external} />
    </a>
  );
}
