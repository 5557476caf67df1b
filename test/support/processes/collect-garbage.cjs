// Loaded into a server whose kept memory a test measures: SIGUSR2 collects its garbage.
'use strict';
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
// With the arguments of a listener it would collect the young objects only.
process.on('SIGUSR2', () => collect());
