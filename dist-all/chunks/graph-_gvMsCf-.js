// src/translate/graph.ts
/**
* Returns the node of that id. Ids are texts of clients and may equal the names of members that
* every object has.
*/
function nodeOf(graph, id) {
	return Object.hasOwn(graph, id) ? graph[id] : void 0;
}
/** Reads v1's notation of a link, `[nodeId, slot]`. */
function linkOf(value) {
	if (!Array.isArray(value) || value.length !== 2) return void 0;
	const [from, slot] = value;
	return typeof from === "string" && typeof slot === "number" ? {
		from,
		slot
	} : void 0;
}
/**
* Returns the ids of the targets and of all nodes that they depend on, dependencies first, in the
* order of a walk from each target.
*/
function dependenciesFirst(graph, targets) {
	const done = /* @__PURE__ */ new Set();
	const seen = /* @__PURE__ */ new Set();
	const stack = targets.filter((id) => nodeOf(graph, id)).toReversed();
	for (let id = stack.at(-1); id !== void 0; id = stack.at(-1)) if (seen.has(id)) done.add(stack.pop() ?? id);
	else {
		seen.add(id);
		for (const from of linkedNodes(graph, id).toReversed()) if (!seen.has(from)) stack.push(from);
	}
	return [...done];
}
/** Returns the nodes that a node takes values from. */
function linkedNodes(graph, id) {
	const found = [];
	for (const value of Object.values(nodeOf(graph, id)?.inputs ?? {})) {
		const from = linkOf(value)?.from;
		if (from !== void 0 && nodeOf(graph, from)) found.push(from);
	}
	return found;
}
/** Returns the part of a graph that its targets need, in the graph's own order. */
function pruneTo(graph, targets) {
	const needed = new Set(dependenciesFirst(graph, targets));
	return Object.fromEntries(Object.entries(graph).filter(([id]) => needed.has(id)));
}
/**
* The maximum number of steps to find which outputs fail because of which node. Graphs that are
* made to be slow get less detail.
*/
const MAX_ATTRIBUTION_STEPS = 2e5;
/**
* Groups targets by the failing node that they depend on. Each target with a cause is named at
* least once, however large the graph.
*/
function* targetsByFailingNode(targets, { causes, neededBy, isFailing }) {
	const byNode = /* @__PURE__ */ new Map();
	let steps = 0;
	for (const target of targets) {
		if (!causes.has(target)) continue;
		if (steps > MAX_ATTRIBUTION_STEPS) {
			const cause = causes.get(target);
			if (cause !== void 0) addTo(byNode, cause, target);
			continue;
		}
		const needed = neededBy(target);
		for (const id of needed) if (isFailing(id)) addTo(byNode, id, target);
		steps += needed.length;
		yield needed.length;
	}
	return byNode;
}
/** Groups targets as `targetsByFailingNode` does, by the links of a graph. */
function dependentOutputs(graph, targets, failing) {
	const causes = /* @__PURE__ */ new Map();
	for (const id of dependenciesFirst(graph, targets)) {
		const from = linkedNodes(graph, id).find((source) => causes.has(source)) ?? "";
		const cause = failing.has(id) ? id : causes.get(from);
		if (cause !== void 0) causes.set(id, cause);
	}
	return targetsByFailingNode(targets, {
		causes,
		neededBy: (target) => dependenciesFirst(graph, [target]),
		isFailing: (id) => failing.has(id)
	});
}
/**
* Returns the submitted node of an id. Nodes that exist only while the graph runs have ids
* `<parent>.<call>.<graph>.<n>`, and v1 clients know only the parent.
*/
function displayNode(graph, id) {
	let candidate = id;
	while (!nodeOf(graph, candidate)) {
		const cut = Math.max(candidate.lastIndexOf("."), candidate.lastIndexOf(":"));
		if (cut <= 0) return void 0;
		candidate = candidate.slice(0, cut);
	}
	return candidate;
}
/** Returns the only node from which no other node takes a value, if there is exactly one. */
function soleSink(graph) {
	const used = new Set(Object.keys(graph).flatMap((id) => linkedNodes(graph, id)));
	const sinks = Object.keys(graph).filter((id) => !used.has(id));
	return sinks.length === 1 ? sinks[0] : void 0;
}
/** Returns v1's name of a node's class; empty for a node that was not submitted. */
function classOf(graph, id) {
	const display = displayNode(graph, id);
	return display !== void 0 && nodeOf(graph, display)?.class_type || "";
}
/** Adds a value to the list of a key. */
function addTo(lists, key, value) {
	const list = lists.get(key);
	if (list) list.push(value);
	else lists.set(key, [value]);
}
export { displayNode as a, pruneTo as c, dependentOutputs as i, soleSink as l, classOf as n, linkOf as o, dependenciesFirst as r, nodeOf as s, addTo as t, targetsByFailingNode as u };
