import { InvalidSetting } from './invalid-setting.ts';
import { parseHost, splitList } from './parse-values.ts';

/** A host that an upstream may redirect to; without a port: all of its ports. */
export type RedirectHost = { readonly hostname: string; readonly port: string | undefined };

/** Reads hosts, each with a port or without. */
export function redirectHosts(texts?: readonly string[]): readonly RedirectHost[] {
  return splitList(texts).map(redirectHost);
}

function redirectHost(text: string): RedirectHost {
  const host = parseHost(text);
  if (host) return host;
  throw new InvalidSetting(
    `option '--upstream-redirects' takes hosts such as minio.internal or 10.0.0.5:9000, not '${text}'`,
  );
}
