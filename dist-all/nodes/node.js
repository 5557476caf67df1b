// src/nodes/node.ts
/** A failure of the node itself. `exceptionType` is the class name for v1 clients. */
var NodeFailure = class extends Error {
	name = "NodeFailure";
	exceptionType;
	constructor(exceptionType, message, options) {
		super(message, options);
		this.exceptionType = exceptionType;
	}
};
var Cancelled = class extends Error {
	name = "Cancelled";
};
var OutOfMemory = class extends Error {
	name = "OutOfMemory";
};
/**
* The bytes that a character counts in the job's memory. V8 stores Latin-1 texts in half of that.
*/
const BYTES_PER_CHAR = 2;
export { BYTES_PER_CHAR, Cancelled, NodeFailure, OutOfMemory };
