import type { ComponentChildren, ComponentProps } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Button } from './ui.tsx';

/** A button that opens a dialog, whose content is there while it is open. */
export function DialogButton({
  text,
  label,
  dialogClass,
  children,
  ...button
}: Omit<ComponentProps<typeof Button>, 'label' | 'onClick'> & {
  readonly text: string;
  /** Name of the dialog. */
  readonly label: string;
  readonly dialogClass: string;
  readonly children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const open = (): void => {
    setOpen(true);
    dialog.current?.showModal();
  };
  return (
    <>
      <Button {...button} onClick={open}>
        {text}
      </Button>
      <dialog ref={dialog} class={dialogClass} aria-label={label} onClose={() => setOpen(false)}>
        {isOpen && children}
        <Button onClick={() => dialog.current?.close()}>Close</Button>
      </dialog>
    </>
  );
}
