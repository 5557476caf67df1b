import { readFileSync } from 'node:fs';

/** Version of this package, as `--version`, logs and `/system_stats` show it. */
export function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
