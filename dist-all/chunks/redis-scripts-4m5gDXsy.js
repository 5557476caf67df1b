// src/redis/redis-scripts.ts
/**
* Defines Lua scripts on a connection and returns a function for each. Redis runs a script wholly or not at all.
* ioredis sends the hash of a script, and its text when Redis does not know the hash, for example after a restart.
*/
function defineScripts(redis, scripts, options) {
	const { namespace, prelude = "", reply = "text", key, send = (call) => call() } = options;
	const bound = key === void 0 ? [] : [key];
	const defined = Object.entries(scripts).map(([name, lua]) => {
		const command = `holdover_${namespace}_${name}`;
		redis.defineCommand(command, {
			numberOfKeys: 1,
			lua: prelude + lua
		});
		const method = reply === "bytes" ? `${command}Buffer` : command;
		const run = Reflect.get(redis, method);
		return [name, (...args) => send(() => run.apply(redis, [...bound, ...args]))];
	});
	return Object.fromEntries(defined);
}
export { defineScripts as t };
