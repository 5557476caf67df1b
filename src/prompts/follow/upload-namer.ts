import { posix } from 'node:path';
import { type ResolvedFile, givenNames } from '../../files/resolve-files.ts';
import type { Json } from '../../protocol/json.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { type GivenNames, hasContentName, withGivenNames } from '../../protocol/upload-folders.ts';
import type { PromptStore } from '../../ledger/ledger.ts';
import type { Job, Output } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';

/**
 * Names uploads as the client of one prompt did, in what a service reports of its job. A service
 * has uploads under content names.
 */
export class UploadNamer {
  readonly #prompt: LivePrompt;
  readonly #prompts: PromptStore;

  constructor(prompt: LivePrompt, prompts: PromptStore) {
    this.#prompt = prompt;
    this.#prompts = prompts;
  }

  async inEvent(event: JobEvent): Promise<JobEvent> {
    if (event.event === 'output' && hasContentName(event.data.name))
      return { ...event, data: namedOutput(event.data, await this.#names()) };
    if (event.event === 'x_text' && hasContentName(event.data.text))
      return withGivenNames(event as unknown as Json, await this.#names()) as typeof event;
    return event;
  }

  async inJob(job: Job): Promise<Job> {
    const { error, outputs, x_ui = {} } = job;
    const texts = { error, x_ui, names: outputs.map(({ name }) => name) } as unknown as Json;
    if (!hasContentName(texts)) return job;
    const names = await this.#names();
    return {
      ...job,
      error: withGivenNames(error as unknown as Json, names) as unknown as Job['error'],
      outputs: outputs.map((output) => namedOutput(output, names)),
      ...(job.x_ui && { x_ui: withGivenNames(x_ui as Json, names) as NonNullable<Job['x_ui']> }),
    };
  }

  /** Reads the files of the prompt from its stored plan (`submit/plan.ts`). */
  async #names(): Promise<GivenNames> {
    const row = await this.#prompts.get(this.#prompt.key);
    const plan = JSON.parse(row?.intentJson ?? '{}') as { placed?: readonly ResolvedFile[] };
    return givenNames(plan.placed ?? []);
  }
}

/** Names an output that its node has named after an upload. The upload's folder is left out. */
function namedOutput(output: Output, names: GivenNames): Output {
  const baseNames = new Map([...names].map(([hash, path]) => [hash, posix.basename(path)]));
  return { ...output, name: withGivenNames(output.name, baseNames) as string };
}
