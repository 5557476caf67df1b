import { useRef, useState } from 'preact/hooks';
import type { JobFile, JobInput } from '../../src/console/api-types.ts';
import chevronLeft from 'icon:chevron-left';
import chevronRight from 'icon:chevron-right';
import download from 'icon:download';
import external from 'icon:external-link';
import { Thumbnail, isPicture, saveFile } from '../lib/pictures.tsx';
import { address, storedKey, viewPath } from '../lib/server.ts';
import { Icon } from '../lib/ui.tsx';
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
          <File key={`${at} ${file.filename}`} file={file} onOpen={() => open(file)} />
        ))}
      </ul>
      <dialog
        ref={dialog}
        class="viewer"
        aria-label="Picture"
        onClose={() => setShown(undefined)}
        onKeyDown={(event) => {
          const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
          const next = (shown ?? 0) + step;
          if (step !== 0 && pictures[next] !== undefined) setShown(next);
        }}
      >
        {shown !== undefined && (
          <Viewer
            files={pictures}
            shown={shown}
            onShow={setShown}
            onClose={() => dialog.current?.close()}
          />
        )}
      </dialog>
    </>
  );
}

function File({ file, onOpen }: { readonly file: AnyFile; readonly onOpen: () => void }) {
  const { filename, subfolder } = file;
  const picture = <Thumbnail of={file} quality={85} />;
  return (
    <li class="file">
      {isPicture(file) ? (
        <button type="button" aria-label={`Open ${filename}`} onClick={onOpen}>
          {picture}
        </button>
      ) : (
        <FileLink file={file}>{picture}</FileLink>
      )}
      <span class="file-name" title={filename}>
        <bdi>{subfolder === '' ? filename : `${subfolder}/${filename}`}</bdi>
        <small>node {file.node}</small>
      </span>
      <button
        type="button"
        class="button is-icon"
        title="Download"
        aria-label={`Download ${filename}`}
        onClick={() => save(file)}
      >
        <Icon shapes={download} />
      </button>
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

/** One picture in its full size. */
function Viewer({
  files,
  shown,
  onShow,
  onClose,
}: {
  readonly files: readonly AnyFile[];
  readonly shown: number;
  readonly onShow: (at: number) => void;
  readonly onClose: () => void;
}) {
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
        {files.length > 1 && (
          <>
            <button
              type="button"
              class="button is-icon"
              aria-label="Previous picture"
              disabled={shown === 0}
              onClick={() => onShow(shown - 1)}
            >
              <Icon shapes={chevronLeft} />
            </button>
            <button
              type="button"
              class="button is-icon"
              aria-label="Next picture"
              disabled={shown === files.length - 1}
              onClick={() => onShow(shown + 1)}
            >
              <Icon shapes={chevronRight} />
            </button>
          </>
        )}
        {storedKey() === null && (
          <a
            class="button is-icon"
            href={address(viewPath(file))}
            target="_blank"
            rel="noopener"
            aria-label="Open in a new tab"
          >
            <Icon shapes={external} />
          </a>
        )}
        <button
          type="button"
          class="button is-icon"
          aria-label={`Download ${file.filename}`}
          onClick={() => save(file)}
        >
          <Icon shapes={download} />
        </button>
        <button type="button" class="button is-small" onClick={onClose}>
          Close
        </button>
      </header>
      <Thumbnail key={shown} of={file} full />
    </>
  );
}

type CompareProps = {
  readonly inputs: readonly JobInput[];
  readonly outputs: readonly JobFile[];
};

/** An input and an output on top of each other, with a border to move. */
export function Compare(props: CompareProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        class="button is-small"
        onClick={() => {
          setOpen(true);
          dialog.current?.showModal();
        }}
      >
        Compare with the input
      </button>
      <dialog
        ref={dialog}
        class="viewer"
        aria-label="Input and output"
        onClose={() => setOpen(false)}
      >
        {isOpen && (
          <>
            <Comparison {...props} />
            <button type="button" class="button" onClick={() => dialog.current?.close()}>
              Close
            </button>
          </>
        )}
      </dialog>
    </>
  );
}

function Comparison({ inputs, outputs }: CompareProps) {
  const [share, setShare] = useState(50);
  const [inputAt, setInputAt] = useState(0);
  const [outputAt, setOutputAt] = useState(0);
  const input = inputs[inputAt] ?? inputs[0];
  const output = outputs[outputAt] ?? outputs[0];
  if (input === undefined || output === undefined) return null;
  return (
    <figure class="compare">
      <div class="compare-pictures">
        <Thumbnail of={input} full />
        <div class="compare-over" style={{ clipPath: `inset(0 0 0 ${share}%)` }}>
          <Thumbnail of={output} full />
        </div>
        <span class="compare-border" style={{ left: `${share}%` }} aria-hidden="true" />
      </div>
      <input
        type="range"
        min="0"
        max="100"
        value={share}
        aria-label="Border between input and output"
        onInput={(event) => setShare(Number(event.currentTarget.value))}
      />
      <figcaption>
        <FileChoice label="Input" files={inputs} value={inputAt} onChange={setInputAt} />
        <FileChoice label="Output" files={outputs} value={outputAt} onChange={setOutputAt} />
      </figcaption>
    </figure>
  );
}

function FileChoice({
  label,
  files,
  value,
  onChange,
}: {
  readonly label: string;
  readonly files: readonly AnyFile[];
  readonly value: number;
  readonly onChange: (at: number) => void;
}) {
  if (files.length === 1) {
    return (
      <span class="file-name" title={files[0]?.filename}>
        <small>{label}</small>
        <bdi>{files[0]?.filename}</bdi>
      </span>
    );
  }
  return (
    <label class="file-name">
      <small>{label}</small>
      <select value={value} onChange={(event) => onChange(Number(event.currentTarget.value))}>
        {files.map(({ filename }, at) => (
          <option key={at} value={at}>
            {filename}
          </option>
        ))}
      </select>
    </label>
  );
}
