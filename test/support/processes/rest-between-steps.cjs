// Loaded into the servers of tests: a generator that runs long leaves the processor to others.
'use strict';
const { isMainThread } = require('node:worker_threads');

/** The short jobs of tests are over by then. */
const FULL_SPEED_MS = 20;
/** From then on it computes a small part of the time. */
const REST_PER_WORK = 25;
/** A job with more is one that runs until it is stopped. */
const STEPS_OF_LONG_JOBS = 400;
const LONGEST_REST_MS = 30;
/** After so long without a step the next one is of another job. */
const NEW_JOB_MS = 100;

if (!isMainThread) {
  const { syncBuiltinESMExports } = require('node:module');
  const timers = require('node:timers/promises');
  const nextTurn = timers.setImmediate;
  let steps = 0;
  let workedMs = 0;
  let restedAtMs = 0;

  const restMs = () => {
    const stepMs = performance.now() - restedAtMs;
    const isSameJob = stepMs < NEW_JOB_MS;
    steps = isSameJob ? steps + 1 : 0;
    workedMs = isSameJob ? workedMs + stepMs : 0;
    if (steps > STEPS_OF_LONG_JOBS) return LONGEST_REST_MS;
    return workedMs > FULL_SPEED_MS ? Math.min(LONGEST_REST_MS, REST_PER_WORK * stepMs) : 0;
  };

  timers.setImmediate = async (...args) => {
    const ms = restMs();
    await (ms >= 1 ? timers.setTimeout(ms) : nextTurn());
    restedAtMs = performance.now();
    return args[0];
  };
  syncBuiltinESMExports();
}
