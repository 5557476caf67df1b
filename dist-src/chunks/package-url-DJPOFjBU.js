// src/lib/package-url.ts
/**
* Returns the URL of a file of the package, such as `page/index.html` or `dist/nodes/pixels.wasm`;
* a folder ends with `/`. This module, compiled or as a piece of the bundle, is always two folders
* below the package's root.
*/
function packageUrl(path) {
	return new URL(`../../${path}`, import.meta.url);
}
export { packageUrl as t };
