import { nameOutput, locationOf } from '../../files/name-output.ts';
import { assetIdOf } from '../../files/asset-id.ts';
import { yieldEvery } from '../../lib/event-loop.ts';
import { readText } from '../../files/asset-content.ts';
import { isGone } from '../../protocol/job-api.ts';
import { classOf } from '../../translate/graph.ts';
import { type KnownFile, showsSavedText } from '../../translate/outputs.ts';
import type { Job, Output } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';

/** The number of outputs that are named before the event loop gets its turn. */
const OUTPUTS_PER_TURN = 32;

/** The v1 names of one job's outputs. */
export class OutputNames {
  readonly #prompt: LivePrompt;
  readonly #ports: PromptPorts;
  /** The outputs that were named here, by id. */
  readonly #named = new Map<string, { readonly output: Output; readonly file: KnownFile }>();
  /** The texts of files that were read here, by id. `undefined`: the text cannot be shown. */
  readonly #texts = new Map<string, string | undefined>();

  constructor(prompt: LivePrompt, ports: PromptPorts) {
    this.#prompt = prompt;
    this.#ports = ports;
  }

  /**
   * Returns the name of an output. `undefined`: an earlier run of the job made the output, and its
   * file was removed with that run.
   */
  async name(output: Output): Promise<KnownFile | undefined> {
    const file = await this.#nameOutput(output);
    // Checked after naming: a file that is removed later takes its name with it.
    // After a restart, the events of all runs of a job are read again.
    if (this.#ports.policy.traits.mayRerunJobs && (await this.#isGone(output.id))) {
      await this.#ports.records.files.remove(this.#prompt.caller.user, file);
      return undefined;
    }
    this.#named.set(output.id, { output, file });
    return file;
  }

  async #isGone(assetId: string): Promise<boolean> {
    const asset = await this.#ports.jobs.api.asset(this.#prompt.caller, assetId);
    return !asset.ok && isGone(asset.error);
  }

  async #nameOutput(output: Output): Promise<KnownFile> {
    const { records, policy, frames } = this.#ports;
    const { user } = this.#prompt.caller;
    const name = await nameOutput(records.files, user, output, policy.clock.now());
    const file = frames.showsAssetIds ? { ...name, id: assetIdOf(user, name) } : name;
    if (!showsSavedText(classOf(this.#prompt.graph, output.node_id))) return file;
    const text = await this.#readTextOnce(output.id);
    return text === undefined ? file : { ...file, text };
  }

  async #readTextOnce(assetId: string): Promise<string | undefined> {
    const { caller } = this.#prompt;
    if (!this.#texts.has(assetId))
      this.#texts.set(assetId, await readText(this.#ports.jobs.api, { caller, assetId }));
    return this.#texts.get(assetId);
  }

  /** Names all outputs of the job, by id. */
  async nameAll(job: Job): Promise<Map<string, KnownFile>> {
    const named = new Map<string, KnownFile>();
    const pause = yieldEvery(OUTPUTS_PER_TURN);
    for (const output of job.outputs) {
      const known = this.#named.get(output.id)?.file;
      named.set(output.id, known ?? (await this.#nameOutput(output)));
      await pause();
    }
    return named;
  }

  /**
   * A service that restarts runs the job again from its start. The same file then has another id,
   * and the first one is gone. Only the existing file keeps a name.
   */
  async removeReplaced(job: Job): Promise<void> {
    const ids = new Set(job.outputs.map(({ id }) => id));
    const files = new Set(job.outputs.map(fileKeyOf));
    for (const { output, file } of this.#named.values()) {
      if (ids.has(output.id) || !files.has(fileKeyOf(output))) continue;
      await this.#ports.records.files.remove(this.#prompt.caller.user, file);
      this.#named.delete(output.id);
    }
  }

  /**
   * Removes the names of files that an earlier process named and that the upstream no longer has.
   */
  async removeGone(job: Job): Promise<void> {
    for (const output of job.outputs) await this.#removeIfGone(output);
  }

  async #removeIfGone(output: Output): Promise<void> {
    const { files } = this.#ports.records;
    const { caller, createdAtMs } = this.#prompt;
    const location = locationOf(output.name, output.x_subfolder);
    const type = output.x_temp ? 'temp' : 'output';
    const existing = await files.get(caller.user, { ...location, type });
    if (!existing || existing.assetId === output.id) return;
    if (existing.modifiedAtMs < createdAtMs) return;
    if (await this.#isGone(existing.assetId)) await files.remove(caller.user, existing);
  }
}

/** Returns a key that is the same for the outputs of two runs that are one file. */
function fileKeyOf({ node_id: nodeId, name, x_subfolder: subfolder }: Output): string {
  return JSON.stringify([nodeId, name, subfolder]);
}
