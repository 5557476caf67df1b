import image from 'icon:image';
import type { TrafficEntry } from '../../src/console/api-types.ts';
import { Icon } from '../lib/ui.tsx';
import { isError } from './rows.ts';
import type { NamedEntry } from './store.ts';

type TitleProps = {
  readonly entry: NamedEntry;
  readonly isInList?: boolean;
  /** The text after the name of a frame or an event. */
  readonly hasText?: boolean;
};

/** An entry in one line: what it is, and what came of it. In the list v2 has a column of its own. */
export function EntryTitle(props: TitleProps) {
  return isCall(props.entry) ? <CallTitle {...props} /> : <EventTitle {...props} />;
}

export function isCall({ kind }: TrafficEntry): boolean {
  return kind === 'call' || kind === 'v2_call';
}

function CallTitle({ entry, isInList = false }: TitleProps) {
  const { kind, method, status } = entry;
  return (
    <span class={`entry is-${kind}`}>
      <span class={`method is-${(method ?? '').toLowerCase()}`}>{method}</span>
      <span class="target">
        <bdi>{isInList ? listedTarget(entry) : entry.target}</bdi>
      </span>
      {status !== undefined && (
        <span class={`status ${isError(entry) ? 'is-bad' : ''}`}>
          {status === 0 ? 'broken' : status}
        </span>
      )}
    </span>
  );
}

function EventTitle({ entry, hasText = true }: TitleProps) {
  const { kind, type, text = '', direction, picture } = entry;
  return (
    <span class={`entry is-${kind}`}>
      <span class={`event ${isError(entry) ? 'is-bad' : ''}`}>
        {kind === 'frame' && (
          <span class="hidden">{direction === 'in' ? 'received ' : 'sent '}</span>
        )}
        {direction === 'in' ? '→ ' : ''}
        {type}
      </span>
      {picture !== undefined && <Icon shapes={image} size={14} />}
      {hasText && text !== '' && (
        <span class="target">
          <bdi>{text}</bdi>
        </span>
      )}
    </span>
  );
}

function listedTarget({ kind, target = '' }: NamedEntry): string {
  return kind === 'v2_call' ? target.replace(/^\/api\/v2(?=\/)/, '') : target;
}

const MONO_CHAR_PX = 7.25;
const TEXT_CHAR_PX = 6.6;
const MAX_TEXT_CHARS = 26;

/** About how wide an entry of the list is, in CSS pixels. */
export function widthOf(entry: NamedEntry, hasText: boolean): number {
  const { method = '', type = '', text = '', picture } = entry;
  if (isCall(entry)) {
    return (method.length + listedTarget(entry).length + 3) * MONO_CHAR_PX + 22;
  }
  const textPx = hasText ? Math.min(text.length, MAX_TEXT_CHARS) * TEXT_CHAR_PX + 8 : 0;
  return type.length * MONO_CHAR_PX + 16 + textPx + (picture === undefined ? 0 : 20);
}
