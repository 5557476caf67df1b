/**
 * Whether this process loads and starts ahead of time what its first callers need. The tests start
 * hundreds of servers that soon end: getting ready takes as long as a start does.
 */
export const isWarmUpWanted = process.env['HOLDOVER_WARM_UP'] !== 'off';
