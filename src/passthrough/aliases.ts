import type { Headers } from './headers.ts';

/** The contract says `X-Service-…`, the services and clients of today `X-Comfy-…`. */
const TWINS = [
  ['x-comfy-', 'X-Service-'],
  ['x-service-', 'X-Comfy-'],
] as const;

/** What the headers of an answer say under one of its two names only, under the other one. */
export function aliases(headers: Headers): Headers {
  const missing: Headers = Object.create(null);
  for (const name in headers) {
    const twin = twinOf(name);
    if (twin !== undefined && !says(headers, twin)) missing[twin] = headers[name] ?? '';
  }
  return missing;
}

function twinOf(name: string): string | undefined {
  const start = name.slice(0, 10).toLowerCase();
  if (!start.startsWith('x-')) return undefined;
  for (const [prefix, other] of TWINS) {
    if (start.startsWith(prefix)) return other + name.slice(prefix.length);
  }
  return undefined;
}

function says(headers: Headers, name: string): boolean {
  const lower = name.toLowerCase();
  return Object.keys(headers).some((each) => each.toLowerCase() === lower);
}
