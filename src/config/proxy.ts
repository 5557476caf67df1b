import proxyAddr from 'proxy-addr';
import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';
import { parseHost, splitList, addressWithoutLogin, parseUrl } from './parse-values.ts';

/** A host that calls may name; without a port: all of its ports. */
export type AllowedHost = {
  readonly hostname: string;
  readonly port: string | undefined;
  /** Written `.example.com`: the host and all hosts below it. */
  readonly hasSubdomains: boolean;
};

/** Where callers reach the server from outside, and which proxies are believed. */
export type ProxySettings = {
  /** `prefix` has no slash at its end; none is ''. */
  readonly publicUrl: { readonly origin: string; readonly prefix: string } | undefined;
  /** Addresses, CIDR blocks, or `loopback`, `linklocal`, `uniquelocal`. */
  readonly trustedProxies: readonly string[];
  readonly allowedHosts: readonly AllowedHost[];
};

/**
 * First segments of the server's own paths. A prefix of one of these could not be told from them;
 * only Holdover's own page is taken care of (`/holdover`).
 */
export const OWN_SEGMENTS: ReadonlySet<string> = new Set(
  (
    'api embeddings experiment extensions features free global_subgraphs healthz history i18n internal ' +
    'interrupt metrics models node_replacements object_info prompt proxy queue readyz settings signed ' +
    'system_stats templates upload userdata users v1 v2 view view_metadata workflow_templates ws'
  ).split(' '),
);

export function proxySettings({ publicUrl, trustProxy, allowedHosts }: Flags): ProxySettings {
  return {
    publicUrl: publicUrl === undefined ? undefined : readPublicUrl(publicUrl),
    trustedProxies: splitList(trustProxy).map(trustedProxy),
    allowedHosts: splitList(allowedHosts).map(allowedHost),
  };
}

function readPublicUrl(text: string): ProxySettings['publicUrl'] {
  const url = parseUrl(text);
  const isPlainUrl = url && /^https?:$/.test(url.protocol) && url.username + url.password === '';
  if (!isPlainUrl || /[?#]/.test(text)) {
    throw new InvalidSetting(
      `option '--public-url' needs an address such as https://example.com/comfy, not '${addressWithoutLogin(text)}'`,
    );
  }
  const prefix = url.pathname.replace(/(^|[^/])\/+$/, '$1');
  if (prefix.includes('//')) {
    throw new InvalidSetting(`option '--public-url' has an empty segment in its path: '${text}'`);
  }
  const [, first = '', ...laterSegments] = prefix.split('/');
  if (laterSegments.length === 0 && OWN_SEGMENTS.has(first)) {
    throw new InvalidSetting(
      `option '--public-url' cannot end in /${first}: that is a path of Holdover's own. ` +
        `Leave it out, or choose another prefix`,
    );
  }
  return { origin: url.origin, prefix };
}

function trustedProxy(text: string): string {
  try {
    proxyAddr.compile(text);
    return text;
  } catch {
    throw new InvalidSetting(
      `option '--trust-proxy' takes addresses such as 10.0.0.5 or 10.0.0.0/8, and "loopback", ` +
        `"linklocal" or "uniquelocal", not '${text}'`,
    );
  }
}

function allowedHost(text: string): AllowedHost {
  const hasSubdomains = text.startsWith('.');
  const host = parseHost(hasSubdomains ? text.slice(1) : text);
  if (host) return { ...host, hasSubdomains };
  throw new InvalidSetting(
    `option '--allowed-hosts' takes hosts such as comfy.example.com, comfy.example.com:8443 or ` +
      `.example.com (with all hosts below it), not '${text}'`,
  );
}
