// src/main.ts
/** Each is loaded only when it is asked for; without one of these names it is the server. */
const COMMANDS = /* @__PURE__ */ new Map([
	["backup", async () => (await import("./chunks/backup-B5xzmmrO.js")).backupCommand],
	["check", async () => (await import("./chunks/check-CIUAPNgO.js")).checkCommand],
	["convert", async () => (await import("./chunks/convert-BZXKzW5Q.js")).convertCommand],
	["import", async () => (await import("./chunks/import-B5yrHNZT.js")).importCommand],
	["migrate", async () => (await import("./chunks/migrate-CkO2ZkS8.js")).migrateCommand],
	["report", async () => (await import("./chunks/report-CIfnp6Ut.js")).reportCommand],
	["restore", async () => (await import("./chunks/restore-C1uAjPwx.js")).restoreCommand],
	["trace", async () => (await import("./chunks/trace-DXbif3A6.js")).traceCommand],
	["worker", async () => (await import("./chunks/worker-BD03RJoH.js")).workerCommand]
]);
const [name = "", ...rest] = process.argv.slice(2);
run();
async function run() {
	const command = await COMMANDS.get(name)?.();
	if (command) process.exit(await command(rest));
	const { serve } = await import("./chunks/serve-CyVXX2MC.js");
	await serve(name === "serve" ? rest : process.argv.slice(2));
}
export {};
