import { MemoryJobQueue } from '../../../src/upstreams/embedded/memory-job-queue.ts';
import { jobQueueSuite } from '../job-queue.suite.ts';

jobQueueSuite('the queue in memory', async () => new MemoryJobQueue());
