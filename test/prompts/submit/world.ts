import { createLazyJson } from '../../../src/lib/lazy-json.ts';
import { NEW_PROMPT, type PromptRow } from '../../../src/ledger/columns.ts';
import type { JobSearch, Result, SubmitRequest } from '../../../src/protocol/job-api.ts';
import { ok } from '../../../src/protocol/job-api.ts';
import type { Graph, Job } from '../../../src/protocol/v2.ts';
import { LivePrompt, type NewLivePrompt } from '../../../src/prompts/live-prompt.ts';
import { LivePrompts, type NewJob } from '../../../src/prompts/live-prompts.ts';
import { LeadershipLost, ifLeadershipLost } from '../../../src/prompts/prompt-event-log.ts';
import type { PromptPorts } from '../../../src/prompts/ports.ts';
import { takeOverPrompt } from '../../../src/prompts/take-over-prompt.ts';
import type { JobCanceller } from '../../../src/prompts/follow/cancel-job.ts';
import type { Follower } from '../../../src/prompts/follow/follower.ts';
import type { SubmissionDraft } from '../../../src/prompts/submit/draft.ts';
import {
  KEY_LABEL,
  restorePlan,
  toStoredPlan,
  withNewKey,
} from '../../../src/prompts/submit/plan.ts';
import type { FollowParts } from '../../../src/prompts/submit/link-job.ts';
import { Submissions } from '../../../src/prompts/submit/submissions.ts';
import { fakePorts } from '../fake-ports.ts';
import { type FakeClock, createFakeClock } from '../../support/fake-clock.ts';

/** How the service answers one attempt. */
export type Answer =
  | 'accept'
  /** It makes a job, and the answer is lost. */
  | 'take and lose'
  | 'lose'
  /** The answer is lost, and the job is made later. */
  | 'take late'
  | 'full'
  | 'down'
  | 'engine down'
  | 'unauthorized'
  | 'no storage';

/** How the service answers one search. */
export type ListAnswer = 'honest' | 'part' | 'unreachable' | 'fails' | 'engine down';

export type Service = {
  readonly remembersKeys: boolean;
  readonly list: 'complete' | '501' | '404';
  /** The answers to the next attempts and searches; then it works. */
  readonly answers: Answer[];
  readonly listAnswers: ListAnswer[];
  readonly latencyMs: number;
};

type MadeJob = { readonly id: string; readonly promptKey: string; isCancelled: boolean };

const CALLER = { user: 'ann' };
const GRAPH: Graph = { 1: { class_type: 'Save', inputs: {} } };
/** The content of a prompt with this id is refused. */
export const REFUSED_ID = 'refused';
const LATE_MS = 45_000;
const never = <T>(): Promise<T> => new Promise<T>(() => {});

/** A service, a ledger, and the processes that submit prompts to the one and record in the other. */
export class World {
  readonly clock: FakeClock = createFakeClock(1_000_000, 1);
  readonly service: Service;
  readonly rows = new Map<string, PromptRow>();
  readonly jobs: MadeJob[] = [];
  readonly events: string[] = [];
  /** The answers that clients got. */
  readonly told = new Map<string, string>();
  /** The ids of prompts that clients got. */
  readonly toldIds = new Map<string, string>();
  /** How often a prompt ended, or was linked. */
  readonly ends = new Map<string, string[]>();
  readonly leaders = new Map<string, Server>();
  /** The processes that ended prompts: they search for jobs of these prompts. */
  readonly endedBy = new Map<string, Server>();
  /** Writes until the process that writes dies; the write is done before, or not. */
  crash: { writesLeft: number; readonly isWritten: boolean } | undefined;
  readonly faults: string[] = [];
  /** The next writes of these kinds fail, since the disk is full. */
  readonly failingWrites: string[] = [];
  /** Prompts that were accepted although their records do not say so. */
  readonly unrecorded = new Set<string>();
  readonly #keys = new Set<string>();
  #ids = 0;

  constructor(service: Partial<Service> = {}) {
    const works = { remembersKeys: true, list: 'complete', answers: [], listAnswers: [] } as const;
    this.service = { latencyMs: 0, ...works, ...service } as Service;
  }

  note(event: string): void {
    this.events.push(event);
  }

  jobsOf(promptKey: string): readonly MadeJob[] {
    return this.jobs.filter((job) => job.promptKey === promptKey && !job.isCancelled);
  }

  /** Throws when the next write of this kind fails. */
  failIfFull(key: string, kind: string): void {
    const at = this.failingWrites.indexOf(kind);
    if (at < 0) return;
    this.failingWrites.splice(at, 1);
    this.unrecorded.add(key);
    throw new Error('no room');
  }

  end(key: string, how: string): void {
    this.ends.set(key, [...(this.ends.get(key) ?? []), how]);
    this.note(`${how} ${key}`);
  }

  cancelJob(id: string): void {
    for (const job of this.jobs) if (job.id === id) job.isCancelled = true;
    this.note(`cancel ${id}`);
  }

  makeJob(promptKey: string): Job {
    const job = { id: `j${++this.#ids}`, promptKey, isCancelled: false };
    this.jobs.push(job);
    return jobOf(job);
  }

  async submit(request: SubmitRequest): Promise<Result<Job>> {
    const { service } = this;
    const promptKey = request.metadata?.[KEY_LABEL] ?? '';
    const key = request.idempotencyKey ?? '';
    const answer = service.answers.shift() ?? 'accept';
    if (service.latencyMs > 0) await this.clock.sleep(service.latencyMs);
    if (answer === 'down') return failed(503, 'upstream_unreachable', { outcome: 'not sent' });
    if (answer === 'full') return failed(429, 'queue_full', { retryAfterSeconds: 5 });
    if (answer === 'unauthorized') return failed(401, 'unauthorized');
    if (answer === 'no storage') return failed(507, 'insufficient_storage');
    if (this.rows.get(promptKey)?.promptId === REFUSED_ID) return failed(422, 'invalid_workflow');
    const isUsed = service.remembersKeys && this.#keys.has(key);
    if (isUsed) return failed(409, 'idempotency_key_reuse');
    this.#keys.add(key);
    if (answer === 'engine down')
      return failed(503, 'upstream_unreachable', { outcome: 'unknown', engineDown: true });
    if (answer === 'take late') void this.clock.sleep(LATE_MS).then(() => this.makeJob(promptKey));
    const job = answer === 'accept' || answer === 'take and lose' ? this.makeJob(promptKey) : null;
    return answer === 'accept' && job ? ok(job) : failed(502, 'lost', { outcome: 'unknown' });
  }

  async search(promptKey: string): Promise<Result<JobSearch>> {
    const { service } = this;
    const answer = service.listAnswers.shift() ?? 'honest';
    if (service.latencyMs > 0) await this.clock.sleep(service.latencyMs);
    if (service.list !== 'complete')
      return ok({ kind: 'no list', mayForgetKeys: service.list === '404' });
    if (answer === 'unreachable') return failed(503, 'upstream_unreachable');
    if (answer === 'engine down') return failed(503, 'upstream_unreachable', { engineDown: true });
    if (answer === 'fails') return failed(500, 'upstream_error');
    const [job] = this.jobsOf(promptKey);
    if (answer === 'part') return ok({ kind: 'not seen' });
    return ok(job ? { kind: 'found', job: jobOf(job) } : { kind: 'not listed' });
  }
}

function jobOf({ id, promptKey }: MadeJob): Job {
  return { id, status: 'queued', metadata: { [KEY_LABEL]: promptKey } } as unknown as Job;
}

function failed(status: number, code: string, more: object = {}): Result<never> {
  return { ok: false, error: { status, code, message: code, details: null, ...more } };
}

type ServerOptions = { readonly outboxLimit?: number; readonly onReason?: (text: string) => void };

/** A process. It leads prompts, and dies at a random write if the world says so. */
export class Server {
  readonly #world: World;
  readonly submissions: Submissions;
  readonly #ports: PromptPorts;
  readonly #follower: Follower;
  readonly prompts = new Map<string, LivePrompt>();
  readonly livePrompts;
  /** When its last attempt for a prompt made no job. */
  readonly #refusedAtMs = new Map<string, number>();
  /** Keys that it leads as far as it knows. */
  readonly #led = new Set<string>();
  isAlive = true;

  constructor(world: World, { outboxLimit = 10, onReason }: ServerOptions = {}) {
    this.#world = world;
    this.livePrompts = new LivePrompts(({ key }, reason) => onReason?.(`${key} ${reason}`));
    const api = {
      submit: (_: unknown, request: SubmitRequest) => this.#submit(request),
      search: (_: unknown, { metadata }: { metadata: Record<string, string> }) =>
        this.#whileAlive(() => world.search(metadata[KEY_LABEL] ?? '')),
      cancel: async (_: unknown, id: string) => {
        world.cancelJob(id);
        return ok({ status: 'canceled' });
      },
    };
    const eventLog = {
      claim: async ({ key }: { key: string }) => this.lead(key),
      isLeader: (key: string) => this.#led.has(key),
      discard: async (key: string) => void this.#led.delete(key),
      stopLeading: (key: string) => world.faults.push(`stopped leading ${key}`),
    };
    this.#ports = fakePorts({
      jobs: { api },
      records: { prompts: this.#prompts(), eventLog },
      frames: { livePrompts: this.livePrompts },
      policy: { outboxLimit, clock: world.clock, deadlineClock: world.clock },
    });
    this.#follower = this.#fakeFollower();
    this.submissions = new Submissions(this.#ports, this.#parts());
  }

  lead(key: string): void {
    this.#world.leaders.set(key, this);
    this.#led.add(key);
  }

  die(): void {
    this.isAlive = false;
  }

  /** Posts a prompt, and notes the answer. */
  async post(key: string, more: object = {}): Promise<void> {
    const { told, toldIds } = this.#world;
    const draft = draftOf(key, this.#world.clock.now(), more);
    told.set(key, 'nothing');
    const answer = await this.submissions.submit(draft).then(
      ({ promptId }) => {
        if (this.isAlive) toldIds.set(key, promptId);
        return '200';
      },
      ({ status, message }: { status?: number; message: string }) => String(status ?? message),
    );
    if (this.isAlive) told.set(key, answer);
  }

  /** Continues a prompt of another process. */
  async takeOver(row: PromptRow): Promise<void> {
    this.lead(row.key);
    const prompt = this.#track(liveOf(row));
    prompt.isTakenOver = true;
    prompt.cancelRequested = row.cancelAskedAtMs !== null;
    const parts = { ...this.#parts(), submissions: this.submissions };
    const next = await takeOverPrompt(this.#ports, parts, prompt);
    await next?.();
  }

  #parts(): FollowParts {
    const jobCanceller = {
      cancelInBackground: ({ jobId }: LivePrompt) => this.#world.cancelJob(jobId ?? ''),
    } as JobCanceller;
    return { follower: this.#follower, jobCanceller };
  }

  async cancel(key: string): Promise<boolean | undefined> {
    const prompt = this.prompts.get(key);
    const row = this.#world.rows.get(key);
    if (!prompt || !row || prompt.jobId !== null) return undefined;
    prompt.cancelRequested = true;
    this.#world.rows.set(key, { ...row, cancelAskedAtMs: 1 });
    return this.submissions.cancel(prompt);
  }

  /** The service lost the job of this prompt before it began: it is sent again. */
  async resend(key: string): Promise<void> {
    const row = this.#world.rows.get(key);
    const prompt = this.prompts.get(key);
    if (row?.state !== 'live' || !prompt) return;
    const plan = withNewKey(restorePlan(row, CALLER));
    await this.#write(key, () => {
      for (const job of this.#world.jobs) if (job.id === row.jobId) job.isCancelled = true;
      this.#world.ends.delete(key);
      return { ...row, state: 'outbox', jobId: null, ...toStoredPlan(plan) };
    });
    this.livePrompts.clearJob(prompt);
    await this.submissions.continue({ prompt, plan, state: 'outbox', waitMs: 1000 });
  }

  async #submit(request: SubmitRequest): Promise<Result<Job>> {
    if (!this.isAlive) return never();
    const world = this.#world;
    const key = request.metadata?.[KEY_LABEL] ?? '';
    if (world.leaders.get(key) !== this) world.faults.push(`${key} was sent by another process`);
    if (this.#refusedAtMs.get(key) === world.clock.now())
      world.faults.push(`${key} was sent again without a wait`);
    world.note(`send ${request.idempotencyKey ?? ''}`);
    const result = await this.#whileAlive(() => world.submit(request));
    if (!result.ok && result.error.outcome !== 'unknown')
      this.#refusedAtMs.set(key, world.clock.now());
    return result;
  }

  /** A dead process starts no call, and gets no answer. */
  async #whileAlive<T>(call: () => Promise<T>): Promise<T> {
    if (!this.isAlive) return never();
    const result = await call();
    return this.isAlive ? result : never();
  }

  /** Writes a row as its leader, or dies at it. */
  async #write(key: string, change: () => PromptRow | undefined): Promise<void> {
    const { leaders, rows, crash } = this.#world;
    if (!this.isAlive) return never();
    if (leaders.get(key) !== this) {
      this.#led.delete(key);
      throw new LeadershipLost();
    }
    const dies = crash !== undefined && --crash.writesLeft === 0;
    if (dies) this.die();
    if (!dies || crash.isWritten) {
      const row = change();
      if (row) rows.set(key, row);
      else rows.delete(key);
    }
    return dies ? never() : undefined;
  }

  #prompts(): object {
    const { rows } = this.#world;
    return {
      insert: (row: PromptRow) => this.#write(row.key, () => row),
      update: (
        key: string,
        _only: string,
        change: Pick<PromptRow, 'state'> & Partial<PromptRow>,
      ) => {
        const step = change.state === 'live' ? 'link' : change.state;
        if (change.intentJson !== undefined)
          this.#world.note(`record ${key} ${step} ${(JSON.parse(change.intentJson) as Keyed).key}`);
        return this.#write(key, () => {
          this.#world.failIfFull(key, step);
          if (step === 'link') this.#world.end(key, step);
          return { ...rowIn(rows, key), ...change };
        });
      },
      remove: (key: string) =>
        this.#write(key, () => {
          this.#world.failIfFull(key, 'remove');
          this.#world.end(key, 'remove');
          return undefined;
        }),
      get: async (key: string) => rows.get(key),
      hasJob: async (id: string) => [...rows.values()].some(({ jobId }) => jobId === id),
    };
  }

  #fakeFollower(): Follower {
    const entry = async (prompt: LivePrompt, kind: string): Promise<boolean> => {
      this.#world.failIfFull(prompt.key, kind);
      const isLed = await this.#write(prompt.key, () => rowIn(this.#world.rows, prompt.key)).then(
        () => true,
        () => false,
      );
      if (isLed && kind === 'waits') this.livePrompts.setWaitReason(prompt, 'in_outbox');
      if (isLed && kind === 'sought') this.livePrompts.setWaitReason(prompt, 'searching');
      return isLed;
    };
    return {
      trackPrompt: (prompt: NewLivePrompt) => this.#track(prompt),
      untrack: (key: string, promptId: string | undefined) => {
        const known = this.prompts.get(key);
        if (known && known.promptId !== promptId) this.livePrompts.remove(known);
      },
      continueEnd: () => false,
      releaseFrames() {},
      openEventStream: (prompt: LivePrompt, job: NewJob) => this.livePrompts.setJob(prompt, job),
      follow: async ({ key }: LivePrompt) => this.#world.failIfFull(key, 'attached'),
      appendEntry: entry,
      remove: async (prompt: LivePrompt) => {
        const rows = this.#prompts() as { remove(key: string): Promise<void> };
        await rows.remove(prompt.key).catch(ifLeadershipLost(undefined));
        this.livePrompts.remove(prompt);
      },
      finishWithoutJob: async (prompt: LivePrompt, { kind }: { kind: string }) => {
        const { rows } = this.#world;
        await this.#write(prompt.key, () => {
          this.#world.end(prompt.key, kind);
          this.#world.endedBy.set(prompt.key, this);
          return { ...rowIn(rows, prompt.key), state: 'done' };
        }).catch(() => {});
        this.livePrompts.remove(prompt);
      },
    } as unknown as Follower;
  }

  #track(newPrompt: NewLivePrompt): LivePrompt {
    const known = this.prompts.get(newPrompt.key);
    if (known && this.livePrompts.has(known)) return known;
    const prompt = new LivePrompt(newPrompt, CALLER, {} as never);
    this.prompts.set(prompt.key, prompt);
    this.livePrompts.add(prompt);
    return prompt;
  }
}

type Keyed = { readonly key: string };

function rowIn(rows: ReadonlyMap<string, PromptRow>, key: string): PromptRow {
  const row = rows.get(key);
  if (!row) throw new Error(`${key} has no record`);
  return row;
}

function draftOf(key: string, createdAtMs: number, more: object): SubmissionDraft {
  const submission = { graph: GRAPH, promptId: undefined, number: 0, clientId: 'c', ...more };
  const plan = {
    promptKey: key,
    idempotencyKey: key,
    graph: GRAPH,
    resolvedFiles: [],
    outputs: ['1'],
    isWhole: true,
    number: submission.number,
    extraData: {},
    secrets: {},
    ownSecrets: [],
    lacksSecrets: false,
  };
  const texts = { graphJson: JSON.stringify(GRAPH), extraDataJson: '{}' };
  return { caller: CALLER, submission, plan, ...texts, createdAtMs } as unknown as SubmissionDraft;
}

function liveOf(row: PromptRow): NewLivePrompt {
  const { key, promptId, number, clientId, createdAtMs } = row;
  const known = { key, promptId, number, clientId, createdAtMs };
  const lazy = { graph: createLazyJson(GRAPH), extraData: createLazyJson({}) };
  return { ...known, lazy, targets: ['1'] };
}

/** The record of a prompt in this state, as another process left it. */
export function rowOf(key: string, more: Partial<PromptRow> = {}): PromptRow {
  const intentJson = JSON.stringify({ key, placed: [], isWhole: true, ownKeys: [] });
  return {
    ...NEW_PROMPT,
    key,
    user: CALLER.user,
    promptId: key,
    jobId: null,
    number: 0,
    clientId: 'c',
    createdAtMs: 1_000_000,
    graphJson: JSON.stringify(GRAPH),
    extraDataJson: '{}',
    targetsJson: '["1"]',
    state: 'submitting',
    intentJson,
    ...more,
  };
}
