import { signal } from '@preact/signals';
import type { Kind } from './rows.ts';

export const isNarrow = signal(false);
const narrow = matchMedia('(max-width: 46rem)');
isNarrow.value = narrow.matches;
narrow.addEventListener('change', () => (isNarrow.value = narrow.matches));
/** Width of one of the two sides of a row, in CSS pixels. */
export const sideWidth = signal(400);
export const filter = signal<{ kind: Kind; text: string; isErrorOnly: boolean }>({
  kind: 'all',
  text: '',
  isErrorOnly: false,
});
export const chosen = signal<string | undefined>(undefined);
