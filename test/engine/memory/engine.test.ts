import { jobsSuite } from '../jobs.suite.ts';
import { TINY_WORKFLOWS as workflows, startEngine } from './open.ts';

jobsSuite('the embedded engine', async () => ({ api: await startEngine(), workflows }));
