import { useRef, useState } from 'preact/hooks';
import lock from 'icon:lock-keyhole';
import { connection, hasKey, useKey } from './state.ts';
import { Button, Empty } from './lib/ui.tsx';

/** Headers carry nothing else. */
const USABLE = /^[\x21-\x7e]+$/;

function KeyForm({ id, onDone }: { readonly id: string; readonly onDone?: () => void }) {
  const [text, setText] = useState('');
  const [fault, setFault] = useState('');
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const key = text.trim();
    if (!USABLE.test(key)) return setFault('A key is made of visible ASCII characters.');
    setFault('');
    setText('');
    useKey(key);
    onDone?.();
  };
  return (
    <form class="key-form" autocomplete="off" onSubmit={onSubmit}>
      <label for={id}>API key or token</label>
      <div class="key-row">
        <KeyField id={id} text={text} onInput={setText} />
        <button type="submit" class="button is-primary">
          Use this key
        </button>
      </div>
      {fault !== '' && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <p id={`${id}-note`} class="muted">
        Kept in this tab until it is closed, and sent to this server only.
      </p>
    </form>
  );
}

function KeyField({
  id,
  text,
  onInput,
}: {
  readonly id: string;
  readonly text: string;
  readonly onInput: (text: string) => void;
}) {
  return (
    <input
      id={id}
      type="password"
      autocomplete="off"
      spellcheck={false}
      required
      value={text}
      aria-describedby={`${id}-note`}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

/** Shown in place of everything while the server wants a key. */
export function LockedView() {
  const state = connection.value;
  const wasRefused = state.is === 'locked' && state.wasRefused;
  return (
    <Empty
      icon={lock}
      level={1}
      title={wasRefused ? 'The server does not take this key' : 'This server needs a key'}
    >
      <KeyForm id="key-locked" />
    </Empty>
  );
}

export function openKeyDialog(): void {
  document.querySelector<HTMLDialogElement>('#key')?.showModal();
}

export function KeyDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = (): void => dialog.current?.close();
  return (
    <dialog id="key" ref={dialog} aria-labelledby="key-title">
      <h2 id="key-title">{hasKey.value ? 'Using a key' : 'Use a key'}</h2>
      <p>
        {hasKey.value
          ? 'Shown are the jobs of this key.'
          : 'Shown are the jobs that were sent without a key. With a key you see the jobs that were sent with it.'}
      </p>
      <KeyForm id="key-input" onDone={close} />
      <div class="buttons">
        {hasKey.value && (
          <Button
            onClick={() => {
              useKey(null);
              close();
            }}
          >
            Forget the key
          </Button>
        )}
        <Button onClick={close}>Close</Button>
      </div>
    </dialog>
  );
}
