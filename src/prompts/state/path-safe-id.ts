/** True when v1 clients can put the id into a URL path unchanged. */
export function isPathSafeId(id: string): boolean {
  return /^[\w.~-]{1,300}$/.test(id);
}
