// src/main.ts
/** Each is loaded only when it is asked for; without one of these names it is the server. */
const COMMANDS = /* @__PURE__ */ new Map([
	["backup", async () => (await import("./chunks/backup-B4GDJsAm.js")).backupCommand],
	["check", async () => (await import("./chunks/check-C5rDb2HD.js")).checkCommand],
	["convert", async () => (await import("./chunks/convert-DJJzKuOh.js")).convertCommand],
	["import", async () => (await import("./chunks/import-BQBrBW8B.js")).importCommand],
	["migrate", async () => (await import("./chunks/migrate-nrvytm-M.js")).migrateCommand],
	["report", async () => (await import("./chunks/report-CkNvJXDQ.js")).reportCommand],
	["restore", async () => (await import("./chunks/restore-DK_P36jL.js")).restoreCommand],
	["trace", async () => (await import("./chunks/trace-CRbRH7jg.js")).traceCommand],
	["worker", async () => (await import("./chunks/worker-CaBPGFWE.js")).workerCommand]
]);
const [name = "", ...rest] = process.argv.slice(2);
run();
async function run() {
	const command = await COMMANDS.get(name)?.();
	if (command) process.exit(await command(rest));
	const { serve } = await import("./chunks/serve-DdoyH1to.js");
	await serve(name === "serve" ? rest : process.argv.slice(2));
}
export {};
