import { type Headers, type RawHeaders, answerHeaders } from './headers.ts';

/** The contract says `X-Service-…`, the services and clients of today `X-Comfy-…`. */
const TWINS = [
  ['x-comfy-', 'X-Service-'],
  ['x-service-', 'X-Comfy-'],
] as const;

/** What an answer says under one of its two names only, under the other one. */
export function aliases(raw: RawHeaders): Headers {
  const headers = answerHeaders(raw);
  const said = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const missing: Headers = {};
  for (const [name, value] of Object.entries(headers)) {
    const twin = twinOf(name);
    if (twin !== undefined && !said.has(twin.toLowerCase())) missing[twin] = value;
  }
  return missing;
}

function twinOf(name: string): string | undefined {
  for (const [prefix, other] of TWINS) {
    if (name.toLowerCase().startsWith(prefix)) return other + name.slice(prefix.length);
  }
  return undefined;
}
