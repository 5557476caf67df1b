import { computed, signal } from '@preact/signals';

/** The parts of the page; the address is `#/part/detail?query`. */
export const PARTS = ['jobs', 'inspector', 'server', 'clients', 'connect'] as const;
export type Part = (typeof PARTS)[number];

export type Route = {
  readonly part: Part;
  /** The id in the address, decoded. */
  readonly detail: string | undefined;
  readonly query: URLSearchParams;
};

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

export const route = computed((): Route => {
  const [path = '', query = ''] = hash.value.slice(1).split('?', 2);
  const [, name = '', detail] = path.split('/');
  const part = PARTS.find((known) => known === name) ?? 'jobs';
  return { part, detail: decoded(detail), query: new URLSearchParams(query) };
});

function decoded(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export function linkTo(
  part: Part,
  detail?: string,
  query?: Readonly<Record<string, string>>,
): string {
  const path = detail === undefined ? `#/${part}` : `#/${part}/${encodeURIComponent(detail)}`;
  const text = query === undefined ? '' : String(new URLSearchParams(query));
  return text === '' ? path : `${path}?${text}`;
}

export function goTo(link: string): void {
  location.hash = link;
}

/** Changes the query of the address without an entry in the history of the browser. */
export function replaceQuery(query: Readonly<Record<string, string>>): void {
  const { part, detail } = route.peek();
  history.replaceState(null, '', linkTo(part, detail, query));
  hash.value = location.hash;
}
