import { readFileSync } from "node:fs";
// src/config/version.ts
/** Version of this package, as `--version`, logs and `/system_stats` show it. */
function packageVersion() {
	const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
	return JSON.parse(text).version;
}
export { packageVersion as t };
