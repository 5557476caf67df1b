// Loaded into the servers of tests: a generator that runs until it is stopped leaves the processor to others.
'use strict';
const { isMainThread } = require('node:worker_threads');

/** As many as a job has that a test lets end. */
const STEPS_AT_FULL_SPEED = 400;
const REST_MS = 25;
/** After so long without a step the next one is of another job. */
const NEW_JOB_MS = 100;

if (!isMainThread) {
  const { syncBuiltinESMExports } = require('node:module');
  const timers = require('node:timers/promises');
  const nextTurn = timers.setImmediate;
  let steps = 0;
  let restedAtMs = 0;
  timers.setImmediate = async (...args) => {
    steps = performance.now() - restedAtMs < NEW_JOB_MS ? steps + 1 : 0;
    if (steps > STEPS_AT_FULL_SPEED) await timers.setTimeout(REST_MS);
    else await nextTurn();
    restedAtMs = performance.now();
    return args[0];
  };
  syncBuiltinESMExports();
}
