/** Reads a `Host` header; `undefined`: it is no host. */
export function readHost(text: string): URL | undefined {
  if (/[@/\\?#\s]/.test(text)) return undefined;
  return URL.canParse(`http://${text}`) ? new URL(`http://${text}`) : undefined;
}
