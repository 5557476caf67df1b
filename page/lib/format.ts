/** `12 s`, `3 min 5 s`, `2 h 10 min`; below ten seconds with one decimal. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

// Making a formatter takes longer than drawing the row that shows its text.
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const DATE_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const NUMBER = new Intl.NumberFormat();
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'narrow' });

/** `12 s ago`, `5 min ago`, `yesterday`, then a date. */
export function ago(atMs: number, nowMs: number): string {
  const seconds = Math.round((nowMs - atMs) / 1000);
  if (seconds < 5) return 'now';
  if (seconds < 60) return RELATIVE.format(-seconds, 'second');
  if (seconds < 3600) return RELATIVE.format(-Math.round(seconds / 60), 'minute');
  if (seconds < 86_400) return RELATIVE.format(-Math.round(seconds / 3600), 'hour');
  if (seconds < 7 * 86_400) return RELATIVE.format(-Math.round(seconds / 86_400), 'day');
  return DATE.format(atMs);
}

export function dateTime(atMs: number): string {
  return DATE_TIME.format(atMs);
}

/** `14:03:21.042` */
export function clockTime(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number) => String(value).padStart(2, '0');
  const ms = String(at.getMilliseconds()).padStart(3, '0');
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`;
}

/** `834 B`, `12.4 kB`, `3.1 MB` */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function count(value: number): string {
  return NUMBER.format(value);
}

export function plural(value: number, word: string): string {
  return value === 1 ? `1 ${word}` : `${count(value)} ${word}s`;
}
