import { MemoryJobQueue } from '../../../src/engine/memory/memory-job-queue.ts';
import { jobQueueSuite } from '../job-queue.suite.ts';

jobQueueSuite('the queue in memory', async () => new MemoryJobQueue());
