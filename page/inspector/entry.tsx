import image from 'icon:image';
import { Icon } from '../lib/ui.tsx';
import { isError } from './rows.ts';
import type { NamedEntry } from './store.ts';

/** An entry in one line: what it is, and what came of it. */
export function EntryTitle({ entry }: { readonly entry: NamedEntry }) {
  const { kind, method, target, status, type, text, direction, picture } = entry;
  if (kind === 'call' || kind === 'v2_call') {
    return (
      <span class={`entry is-${kind}`}>
        <span class={`method is-${(method ?? '').toLowerCase()}`}>{method}</span>
        <span class="target">
          <bdi>{target}</bdi>
        </span>
        {status !== undefined && (
          <span class={`status ${isError(entry) ? 'is-bad' : ''}`}>
            {status === 0 ? 'broken' : status}
          </span>
        )}
      </span>
    );
  }
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
      <span class="target">
        <bdi>{text}</bdi>
      </span>
    </span>
  );
}
