import { C as idsOfFolder, l as readCallCounts, p as databasePath } from "./sqlite-ledger-CF5LsL03.js";
import { i as ledgerIdIn } from "./inspect-0NrKY5YP.js";
import { t as reportOf } from "./usage-report-qYZ579YX.js";
import { n as withRedis, t as runCommand } from "./shared-options-ihEXDHvk.js";
import { resolve } from "node:path";
import { Command, Option } from "commander";
// src/migration/usage-report-text.ts
const NO_CLIENTS = "No client has called v1 so far.\n";
const IDS_SHOWN = 3;
/** Returns the report as text for a terminal. */
function reportText(clients) {
	return clients.length === 0 ? NO_CLIENTS : clients.map(clientText).join("\n");
}
function clientText(client) {
	const { user, client_ids: ids, calls, first_seen: first, last_seen: last } = client;
	const named = ids.length === 0 ? "" : `, client id ${idsText(ids)}`;
	return [
		titleOf(client),
		`  user ${user}${named}`,
		`  ${countText(calls)} from ${first} to ${last}`,
		`  ${client.verdict}`,
		...client.because.map((reason) => `    - ${reason}`),
		...notesOn(client.routes).map((note) => `    ${note}`),
		...table(client.routes).map((line) => `  ${line}`),
		""
	].join("\n");
}
/** Returns the name of the program, with the `User-Agent` of its sockets if it differs. */
function titleOf({ agent, socket_agents: socketAgents }) {
	return socketAgents.length === 0 ? agent : `${agent}, sockets by ${socketAgents.join(", ")}`;
}
/** Returns a note for each route whose v2 call does the same with an exception. */
function notesOn(routes) {
	return routes.flatMap(({ route, fit, lacks }) => fit === "same" && lacks !== null ? [`${route}, unless it needs ${lacks}`] : []);
}
function idsText(ids) {
	const more = ids.length - IDS_SHOWN;
	return ids.slice(0, IDS_SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
function countText(calls) {
	return calls === 1 ? "1 call" : `${calls} calls`;
}
function table(routes) {
	const rows = [[
		"v1 call",
		"times",
		"last seen",
		"v2 call"
	], ...routes.map(({ route, calls, last_seen: last, v2 }) => [
		route,
		String(calls),
		last.slice(0, 19).replace("T", " "),
		v2 ?? "–"
	])];
	const widths = [
		0,
		1,
		2
	].map((i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
	return rows.map((row) => row.map((cell, i) => i === 1 ? cell.padStart(widths[1] ?? 0) : cell.padEnd(widths[i] ?? 0)).join("  ").trimEnd());
}
// src/cli/report.ts
/** `holdover report`: lists the clients that still use v1. A server may run meanwhile. Resolves with the exit code. */
function reportCommand(argv) {
	const command = new Command("holdover report").description("Shows which clients still call v1, what they call, and what v2 has in its place.").addOption(new Option("--data-dir <DIR>", "of the server").default("./data").env("HOLDOVER_DATA_DIR")).addOption(new Option("--ledger <URL>", "of the server, when it is not in its data directory").default("sqlite").env("HOLDOVER_LEDGER")).option("--json", "for programs");
	return runCommand(command, argv, printReport, String);
}
async function printReport(command) {
	const { json, ...location } = command.opts();
	const clients = reportOf(await callsIn(location));
	process.stdout.write(json ? `${JSON.stringify({ clients }, null, 2)}\n` : reportText(clients));
	return 0;
}
async function callsIn({ dataDir, ledger }) {
	return withRedis({ ledger }, async (redis) => redis ? redis.ledger.calls.list() : callsInDatabase(dataDir));
}
function callsInDatabase(dataDir) {
	const path = databasePath(dataDir);
	let rows;
	let isFormer = false;
	try {
		rows = readCallCounts(path);
		const { ledgerId } = idsOfFolder(dataDir);
		isFormer = rows !== void 0 && ledgerId !== void 0 && ledgerIdIn(path) !== ledgerId;
	} catch (cause) {
		const { message } = cause;
		throw new Error(`the ledger ${resolve(path)} cannot be read: ${message}`, { cause });
	}
	if (isFormer) throw new Error(`the files in ${dataDir} have another ledger: name it with --ledger`);
	if (rows) return rows;
	throw new Error(`there is no ledger ${path}: name the server's --data-dir`);
}
export { reportCommand };
