/**
 * Matches a name with v1's counter, as in `ComfyUI_00007_.png`: five digits or more between
 * underscores before the extension.
 */
const COUNTED = /^(.*_)(\d{5,})(_(?:\.[^.]*)?)$/;

/**
 * Yields the names that v1 would give, in order, while the earlier ones are taken: v1 continues the
 * file counter. A name without a counter gets ` (1)`, ` (2)` … before the extension, as in v1's
 * uploads.
 */
export function* freeNames(filename: string): Generator<string, never> {
  yield filename;
  const [, stem, count, tail] = COUNTED.exec(filename) ?? [];
  if (count === undefined) for (let i = 1; ; i++) yield uploadName(filename, i);
  for (let i = BigInt(count) + 1n; ; i++)
    yield `${stem}${i.toString().padStart(count.length, '0')}${tail}`;
}

/** Adds a number before the last extension, as v1's uploads do: `a.tar (1).gz`. */
export function uploadName(filename: string, number: number): string {
  if (number === 0) return filename;
  const dot = filename.lastIndexOf('.');
  const end = dot > 0 ? dot : filename.length;
  return `${filename.slice(0, end)} (${number})${filename.slice(end)}`;
}

/** The names of one folder that begin with the same text and differ in their number. */
export type NameSeries = {
  readonly temp: boolean;
  readonly subfolder: string;
  readonly name: { readonly start: string };
};

/**
 * Returns the number that v1's file counter reads in a name, behind its prefix and an underscore; 0
 * when there is none. Only in texts a dot may follow it. A longer number would lose digits, and its
 * successor would be the same number.
 */
export function counterIn(afterPrefix: string): number {
  return Number(/^(\d{1,15})(_|$|\.(?:txt|csv|md|json)$)/.exec(afterPrefix)?.[1] ?? 0);
}
