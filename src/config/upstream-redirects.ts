import { InvalidSetting } from './invalid-setting.ts';

/** A host that an upstream may redirect to; without a port: all of its ports. */
export type RedirectHost = { readonly hostname: string; readonly port: string | undefined };

const HOST_FORM = /^(\[[\da-f:.]+\]|[^:/?#@\s[\]]+)(?::(\d{1,5}))?$/i;

/** Reads `HOST` and `HOST:PORT`; the environment has several of them in one text. */
export function redirectHosts(texts: readonly string[] = []): readonly RedirectHost[] {
  return texts
    .flatMap((text) => text.split(/[\s,;]+/))
    .filter((text) => text !== '')
    .map(redirectHost);
}

function redirectHost(text: string): RedirectHost {
  const [, host = '', port] = HOST_FORM.exec(text) ?? [];
  const url = URL.canParse(`http://${host}`) ? new URL(`http://${host}`) : undefined;
  if (host === '' || url === undefined || Number(port ?? 1) > 65_535 || host.includes('*')) {
    throw new InvalidSetting(
      `option '--upstream-redirects' takes hosts such as minio.internal or 10.0.0.5:9000, not '${text}'`,
    );
  }
  return { hostname: url.hostname, port };
}
