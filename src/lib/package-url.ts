/**
 * Returns the URL of a file of the package, such as `page/index.html` or `dist/main.js`; a folder
 * ends with `/`. This module, compiled or as a piece of the bundle, is always two folders below the
 * package's root.
 */
export function packageUrl(path: string): URL {
  return new URL(`../../${path}`, import.meta.url);
}
