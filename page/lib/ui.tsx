import { type ComponentChildren, h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import check from 'icon:check';
import copy from 'icon:copy';
import search from 'icon:search';

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

/** A button with an icon, a text or both. */
export function Button({
  icon,
  look = '',
  label,
  children,
  ...more
}: {
  readonly icon?: Shapes;
  /** Classes of its style: `is-icon`, `is-small`, `is-danger` … */
  readonly look?: string;
  /** Read aloud in place of the text. */
  readonly label?: string;
  readonly title?: string;
  readonly disabled?: boolean;
  readonly 'aria-pressed'?: boolean;
  readonly onClick: () => void;
  readonly children?: ComponentChildren;
}) {
  const named = label === undefined ? {} : { 'aria-label': label };
  return (
    <button type="button" class={`button ${look}`} {...named} {...more}>
      {icon !== undefined && <Icon shapes={icon} />}
      {icon !== undefined && children !== undefined ? <span>{children}</span> : children}
    </button>
  );
}

/** One line of a list of facts. */
export function Fact({
  name,
  title,
  children,
}: {
  readonly name: string;
  readonly title?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <div>
      <dt>{name}</dt>
      <dd {...(title !== undefined && { title })}>{children}</dd>
    </div>
  );
}

/** A table that scrolls by itself; its rows are the children. */
export function Table({
  label,
  columns,
  children,
}: {
  readonly label: string;
  readonly columns: readonly string[];
  readonly children: ComponentChildren;
}) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label={label}>
      <table class="plain-table">
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A text of a program, with a button that copies it; others stand before that one. */
export function CodeText({
  text,
  label,
  children,
}: {
  readonly text: string;
  readonly label: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="code">
      <pre tabIndex={0}>{text}</pre>
      <div class="code-buttons">
        {children}
        <CopyButton text={text} label={label} />
      </div>
    </div>
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
  readonly text: string;
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
    await copyText(text);
    setCopied(true);
  };
  return (
    <Button
      icon={isCopied ? check : copy}
      look={isBare ? 'is-icon is-bare' : 'is-small'}
      label={label}
      title={label}
      onClick={() => void onClick()}
    >
      {isBare ? undefined : isCopied ? 'Copied' : 'Copy'}
    </Button>
  );
}

/** A page over plain HTTP has no clipboard of its own. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
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

/** The own traffic or clients, or for the operator those of all users. */
export type Scope = 'own' | 'all';

export function ScopeChoice(props: {
  readonly label: string;
  readonly value: Scope;
  readonly onChange: (value: Scope) => void;
}) {
  const options = [
    { value: 'own', text: 'Mine' },
    { value: 'all', text: 'All users' },
  ] as const;
  return <Choice {...props} options={options} />;
}

export function SearchField({
  label,
  placeholder,
  value,
  onInput,
}: {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
}) {
  return (
    <label class="search">
      <Icon shapes={search} />
      <span class="hidden">{label}</span>
      <input
        type="search"
        placeholder={placeholder}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
