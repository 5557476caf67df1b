import { successOf } from '../lib/server.ts';
import { askServer, knownServers, scope } from './store.ts';

type Archive = { readonly log: { entries: readonly { readonly startedDateTime: string }[] } };

/** The recorded traffic as an HTTP archive (HAR 1.2); that of several servers joined by time. */
export async function harOf(): Promise<Blob> {
  const archives: Blob[] = [];
  for (const server of knownServers()) {
    const query = new URLSearchParams({ scope: scope.peek(), server });
    const answer = await askServer(`holdover/api/traffic/har?${query}`);
    // A server that was stopped has no entries any more.
    if (answer.status === 404) continue;
    archives.push(await (await successOf(answer)).blob());
  }
  const [only] = archives;
  if (only !== undefined && archives.length === 1) return only;
  return new Blob([await joined(archives)], { type: 'application/json' });
}

async function joined(archives: readonly Blob[]): Promise<string> {
  const parsed = await Promise.all(
    archives.map(async (archive) => JSON.parse(await archive.text()) as Archive),
  );
  const [first] = parsed;
  if (first === undefined) throw new Error('Nothing was recorded.');
  const entries = parsed
    .flatMap(({ log }) => log.entries)
    .toSorted((a, b) => a.startedDateTime.localeCompare(b.startedDateTime));
  return JSON.stringify({ log: { ...first.log, entries } });
}
