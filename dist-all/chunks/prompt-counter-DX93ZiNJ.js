// src/replication/prompt-counter.ts
/** Opens the counter of v1's prompt numbers, which all processes share. It starts at `first` unless it exists. */
async function openSharedCounter({ commands, prefix }, first) {
	const key = `${prefix}number`;
	await commands.set(key, first, "NX");
	return { next: async () => await commands.incr(key) - 1 };
}
export { openSharedCounter };
