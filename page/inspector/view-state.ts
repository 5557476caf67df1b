import { signal } from '@preact/signals';
import type { TrafficFilter } from './rows.ts';

/** Width of one of the two sides of a row, in CSS pixels. */
export const sideWidth = signal(400);
type Filter = Omit<TrafficFilter, 'promptId'>;
export const filter = signal<Filter>({ kind: 'all', text: '', isErrorOnly: false });

export function setFilter(change: Partial<Filter>): void {
  filter.value = { ...filter.peek(), ...change };
}

export const chosen = signal<string | undefined>(undefined);
