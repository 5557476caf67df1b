import { r as countSubscribers } from "./redis-CtygY6In.js";
import { t as completesWithin } from "./completes-within-sS30dHHy.js";
import { a as createDeferred } from "./concurrency-DwpPd4rK.js";
import { randomUUID } from "node:crypto";
// src/replication/shared-log-lines.ts
/** How long a call waits for the log lines of a process that does not answer. */
const GATHER_TIMEOUT_MS = 500;
/** The name of the channel to which each server is subscribed while it runs. */
function logChannel(channels) {
	return `${channels}logs`;
}
/**
* Opens the exchange of log lines between processes. All processes are subscribed to one channel, and each to a
* channel of its own for answers. A process that starts asks the others for their subscriptions.
*/
async function openSharedLog(options) {
	const { links, instance, handlers, log } = options;
	const { commands, channels } = links;
	const subscriber = links.subscriber();
	const all = logChannel(channels);
	const inbox = (of) => `${channels}logs:${of}`;
	const pendingRequests = /* @__PURE__ */ new Map();
	function logFailure(error) {
		log.debug({
			event: "replication.log_failed",
			err: error
		}, "could not share log lines");
	}
	/** Sends nothing while Redis is unreachable, because the messages would wait in memory. */
	async function send(channel, message) {
		if (commands.status !== "ready") return;
		await commands.publish(channel, JSON.stringify({
			...message,
			from: instance
		}));
	}
	function receive(envelope) {
		const { from } = envelope;
		if (from === instance) return;
		switch (envelope.kind) {
			case "subscribe": return handlers.onSubscribe(envelope.user, envelope.clientId);
			case "unsubscribe": return handlers.onUnsubscribe(envelope.user, envelope.clientId);
			case "join":
				for (const [user, clientId] of handlers.subscriptions()) answer(from, {
					kind: "subscribe",
					user,
					clientId
				});
				return;
			case "lines": return handlers.onEntries(envelope.user, envelope.entries);
			case "ask":
				const { id, user } = envelope;
				return answer(from, {
					kind: "answer",
					id,
					entries: handlers.entries(user)
				});
			case "answer": return pendingRequests.get(envelope.id)?.(envelope.entries);
		}
	}
	function answer(to, message) {
		send(inbox(to), message).catch(logFailure);
	}
	async function sendToAll(message) {
		await completesWithin(GATHER_TIMEOUT_MS, send(all, message).catch(logFailure));
	}
	async function ask(user, id, onEntries) {
		let missing = await countSubscribers(links, all) - 1;
		const complete = createDeferred();
		pendingRequests.set(id, (entries) => {
			onEntries(entries);
			if (--missing === 0) complete.resolve();
		});
		if (missing <= 0) return;
		await send(all, {
			kind: "ask",
			user,
			id
		});
		await complete.promise;
	}
	const onMessage = (text) => receive(JSON.parse(text.toString()));
	subscriber.onReconnect(() => void sendToAll({ kind: "join" }));
	await Promise.all([all, inbox(instance)].map((name) => subscriber.subscribe(name, onMessage)));
	await sendToAll({ kind: "join" });
	return {
		subscribe: (user, clientId) => sendToAll({
			kind: "subscribe",
			user,
			clientId
		}),
		unsubscribe: (user, clientId) => sendToAll({
			kind: "unsubscribe",
			user,
			clientId
		}),
		publish: (user, entries) => void send(all, {
			kind: "lines",
			user,
			entries
		}).catch(logFailure),
		async gather(user) {
			const id = randomUUID();
			const found = [];
			const asked = ask(user, id, (entries) => found.push(...entries)).catch(logFailure);
			await completesWithin(GATHER_TIMEOUT_MS, asked);
			pendingRequests.delete(id);
			return found;
		},
		close: () => subscriber.close()
	};
}
export { logChannel, openSharedLog };
