import { type RawHeaders, hasHeader } from './headers.ts';

/** The contract names these headers `X-Service-…`; today's services and clients use `X-Comfy-…`. */
const ALIASES = [
  ['x-comfy-', 'X-Service-'],
  ['x-service-', 'X-Comfy-'],
] as const;

/**
 * The aliases that are missing: headers that an answer carries under one of the two names only,
 * under the other one.
 */
export function missingAliases(lines: RawHeaders): RawHeaders {
  const missing: string[] = [];
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const alias = aliasOf(lines[i] ?? '');
    if (alias !== undefined && !hasHeader(lines, alias)) missing.push(alias, lines[i + 1] ?? '');
  }
  return missing;
}

function aliasOf(name: string): string | undefined {
  if (name[1] !== '-') return undefined;
  const start = name.slice(0, 10).toLowerCase();
  for (const [prefix, other] of ALIASES) {
    if (start.startsWith(prefix)) return other + name.slice(prefix.length);
  }
  return undefined;
}
