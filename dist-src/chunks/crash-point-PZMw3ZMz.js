// src/lib/crash-point.ts
/** Read once, since each read of an environment variable is a system call. */
const crashAt = process.env["HOLDOVER_CRASH_AT"];
let arrivalCount = 0;
/**
* Ends this process as kill -9 does, if `HOLDOVER_CRASH_AT` names this point: only so can a test
* hit the one instruction between two steps. `NAME:3` ends it when the point is reached for the
* third time.
*/
function reached(point) {
	if (crashAt === void 0) return;
	const [name, nth = "1"] = crashAt.split(":");
	if (name === point && ++arrivalCount === Number(nth)) process.kill(process.pid, "SIGKILL");
}
export { reached as t };
