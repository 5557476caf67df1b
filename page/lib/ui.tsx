import { type ComponentChildren, h } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import check from 'icon:check';
import copy from 'icon:copy';

type Shapes = readonly (readonly [string, Readonly<Record<string, string>>])[];

/** A drawing beside a text; it says nothing by itself. */
export function Icon({ shapes, size = 16 }: { readonly shapes: Shapes; readonly size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      aria-hidden="true"
      focusable="false"
    >
      {shapes.map(([name, attributes]) => h(name, { ...attributes }))}
    </svg>
  );
}

export const STATUS_WORDS = {
  pending: 'Queued',
  in_progress: 'Running',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
} as const;
export type Status = keyof typeof STATUS_WORDS;

export function StatusBadge({ status }: { readonly status: Status }) {
  return <span class={`badge is-${status}`}>{STATUS_WORDS[status]}</span>;
}

/** Shown in place of a list: nothing is there, there is an error, or a reason to wait. */
export function Empty({
  icon,
  title,
  level = 2,
  children,
}: {
  readonly icon: Shapes;
  readonly title: string;
  /** 1 where it is all of the page. */
  readonly level?: 1 | 2;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon shapes={icon} size={32} />
      {level === 1 ? <h1 tabIndex={-1}>{title}</h1> : <h2>{title}</h2>}
      {children}
    </div>
  );
}

const COPIED_MS = 1500;

/** Copies a text, and says that it did. */
export function CopyButton({
  text,
  label,
  isBare = false,
}: {
  readonly text: string | (() => string);
  readonly label: string;
  /** Without a word. */
  readonly isBare?: boolean;
}) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const onClick = async (): Promise<void> => {
    await copyText(typeof text === 'function' ? text() : text);
    setCopied(true);
  };
  return (
    <button
      type="button"
      class={`button ${isBare ? 'is-icon is-bare' : 'is-small'}`}
      aria-label={label}
      title={label}
      onClick={() => void onClick()}
    >
      <Icon shapes={isCopied ? check : copy} />
      {!isBare && <span>{isCopied ? 'Copied' : 'Copy'}</span>}
    </button>
  );
}

/** A page over plain HTTP has no clipboard of its own. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  // Nothing outside an open dialog can be selected.
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** A row of buttons of which one is chosen. */
export function Choice<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: readonly {
    readonly value: T;
    readonly text: ComponentChildren;
    readonly title?: string;
  }[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          aria-pressed={option.value === value}
          {...(option.title !== undefined && { title: option.title, 'aria-label': option.title })}
          onClick={() => onChange(option.value)}
        >
          {option.text}
        </button>
      ))}
    </div>
  );
}

/** True once the element has been near the visible part. */
export function useSeen<T extends Element>() {
  const ref = useRef<T>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (element === null || isSeen) return undefined;
    const observer = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting === true && setSeen(true),
      { rootMargin: '200px' },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [isSeen]);
  return [ref, isSeen] as const;
}
