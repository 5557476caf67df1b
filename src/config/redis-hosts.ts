/** `redis://[user:password@]HOST:PORT[,HOST:PORT …][/db]` in parts; several hosts are nodes of a cluster. */
export function splitHosts(text: string): {
  readonly login: string;
  readonly hosts: readonly string[];
  readonly rest: string;
} {
  const parts = /^([a-z]+:\/\/(?:[^/]*@)?)([^/?#]*)(.*)/is.exec(text);
  const [, login = '', hosts = '', rest = ''] = parts ?? [];
  return { login, hosts: hosts.split(','), rest };
}

/** The address of a Redis. */
export type RedisNode = { readonly host: string; readonly port: number };

/** The addresses of the hosts. */
export function redisNodes(url: string): RedisNode[] {
  return splitHosts(url).hosts.map((text) => {
    const { hostname, port } = new URL(`http://${text}`);
    return { host: hostname.replaceAll(/^\[|\]$/g, ''), port: port === '' ? 6379 : Number(port) };
  });
}

/** The address without credentials. */
export function withoutRedisLogin(url: string): string {
  const { login, hosts, rest } = splitHosts(url);
  return `${login.split('//', 1)[0]}//${hosts.join(',')}${rest}`;
}
