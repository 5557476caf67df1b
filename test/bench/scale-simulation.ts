import { seeded } from '../support/graphs/seeded.ts';
import { quantile } from './measure.ts';
import type { RecordedCosts } from './scale-costs.ts';

/** An installation and its load. Users are divided evenly among the Redis servers. */
export type Installation = {
  readonly sockets: number;
  readonly replicas: number;
  readonly redisServers: number;
};

export type Simulated = {
  /** Shares of the time that a Redis and a replica work, on the average. */
  readonly redisLoad: number;
  readonly replicaLoad: number;
  /** From the event of the service to the frame of the socket, without the network. */
  readonly p99Ms: number;
  readonly redisMegabytesPerSecond: number;
};

const SECONDS = 3;
const SEED = 20;
/** One running job for so many sockets; each reports its steps at this pace, and has so many. */
const SOCKETS_PER_JOB = 10;
const STEPS_PER_SECOND = 2;
const STEPS = 40;

/** A program that does one thing at a time, in the order they come. */
type Worker = { freeAtUs: number; busyUs: number };

/** A step or prompt on its way: what is left to be done for it, in order. */
type Work = {
  readonly beganAtUs: number;
  readonly isStep: boolean;
  readonly left: { readonly worker: Worker; readonly forUs: number }[];
};

type Event = { readonly atUs: number; readonly work: Work };

/**
 * Lets steps and prompts arrive at random times. Each costs its leader, then its Redis, then the
 * replica of its socket, any of which may be busy with others.
 */
export function simulate(costs: RecordedCosts, installation: Installation): Simulated {
  const { random } = seeded(SEED);
  const { sockets, replicas, redisServers } = installation;
  const [redis, servers] = [workers(redisServers), workers(replicas)];
  const any = (from: readonly Worker[]): Worker =>
    from[Math.floor(random() * from.length)] ?? { freeAtUs: 0, busyUs: 0 };
  const stepsPerUs = ((sockets / SOCKETS_PER_JOB) * STEPS_PER_SECOND) / 1e6;
  const waitUs = () => -Math.log(1 - random()) / (stepsPerUs * (1 + 1 / STEPS));
  const latenciesMs: number[] = [];
  const queue = new EventQueue();
  let bytes = 0;

  function arrival(atUs: number): Event {
    const isStep = random() >= 1 / (STEPS + 1);
    const [leader, socketAt] = [any(servers), any(servers)];
    const stepCost = leader === socketAt ? costs.step : costs.stepElsewhere;
    const { replicaUs, redisUs, sentBytes, receivedBytes } = isStep ? stepCost : costs.prompt;
    bytes += sentBytes + receivedBytes;
    const left = [
      { worker: leader, forUs: replicaUs / 2 },
      { worker: any(redis), forUs: redisUs },
      { worker: isStep ? socketAt : leader, forUs: replicaUs / 2 },
    ];
    return { atUs, work: { beganAtUs: atUs, isStep, left } };
  }

  for (let atUs = waitUs(); atUs < SECONDS * 1e6; atUs += waitUs()) queue.add(arrival(atUs));
  for (let event = queue.next(); event; event = queue.next()) {
    const { atUs, work } = event;
    const task = work.left.shift();
    if (task) queue.add({ atUs: doneAtUs(task.worker, atUs, task.forUs), work });
    else if (work.isStep) latenciesMs.push((atUs - work.beganAtUs) / 1000);
  }
  return {
    redisLoad: loadOf(redis),
    replicaLoad: loadOf(servers),
    p99Ms: quantile(latenciesMs, 0.99),
    redisMegabytesPerSecond: bytes / SECONDS / redisServers / 1e6,
  };
}

function workers(count: number): Worker[] {
  return Array.from({ length: count }, () => ({ freeAtUs: 0, busyUs: 0 }));
}

function doneAtUs(worker: Worker, atUs: number, forUs: number): number {
  worker.freeAtUs = Math.max(worker.freeAtUs, atUs) + forUs;
  worker.busyUs += forUs;
  return worker.freeAtUs;
}

/** May exceed 1: the work of more time than there was. */
function loadOf(all: readonly Worker[]): number {
  return all.reduce((sum, { busyUs }) => sum + busyUs, 0) / all.length / (SECONDS * 1e6);
}

/** A heap: the earliest event comes first. */
class EventQueue {
  readonly #heap: Event[] = [];

  add(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#timeAt(parent) <= event.atUs) break;
      this.#move(parent, at);
      at = parent;
    }
    heap[at] = event;
  }

  next(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (this.#timeAt(child + 1) < this.#timeAt(child)) child++;
      if (this.#timeAt(child) >= last.atUs) break;
      this.#move(child, at);
      at = child;
    }
    heap[at] = last;
    return first;
  }

  #move(from: number, to: number): void {
    const event = this.#heap[from];
    if (event) this.#heap[to] = event;
  }

  #timeAt(index: number): number {
    return this.#heap[index]?.atUs ?? Infinity;
  }
}
