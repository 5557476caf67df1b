// src/protocol/steps.ts
/** Runs all steps without a pause. */
function runSteps(steps) {
	for (;;) {
		const step = steps.next();
		if (step.done === true) return step.value;
	}
}
export { runSteps as t };
