/** Reads a `Host` header as the root of a server; `undefined`: it is no host. */
export function readHost(text: string, scheme = 'http'): URL | undefined {
  const root = `${scheme}://${text}`;
  return !/[@/\\?#\s]/.test(text) && URL.canParse(root) ? new URL(root) : undefined;
}
