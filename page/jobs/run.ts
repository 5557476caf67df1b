import { getJson, postJson } from '../lib/server.ts';
import type { JobAnswer } from '../../src/console/api-types.ts';
import { tell, tellError } from '../state.ts';

const SEED = /("(?:noise_)?seed"\s*:\s*)-?\d+/g;
const MAX_SEED = 2 ** 48;

/**
 * Submits the graph of a job again, through v1. The graph stays a text: its numbers may not fit a double.
 * Resolves with the id of the new prompt.
 */
export async function runAgain(
  id: string,
  { seed }: { readonly seed: 'same' | 'new' },
): Promise<string | undefined> {
  try {
    const { graph_json: text, workflow_json: workflow } = await getJson<JobAnswer>(
      `holdover/api/job?${new URLSearchParams({ id })}`,
    );
    const graph =
      seed === 'new' ? text.replace(SEED, (_, name: string) => `${name}${randomSeed()}`) : text;
    const pngInfo =
      workflow === null ? '' : `,"extra_data":{"extra_pnginfo":{"workflow":${workflow}}}`;
    const response = await postJson('prompt', `{"prompt":${graph}${pngInfo}}`);
    const { prompt_id: promptId } = (await response.json()) as { prompt_id: string };
    const isSame = seed === 'new' && !hasSeed(text);
    tell(isSame ? 'Submitted again; its graph has no seed.' : 'Submitted again.');
    return promptId;
  } catch (error) {
    tellError(error);
    return undefined;
  }
}

export function hasSeed(graphJson: string): boolean {
  return graphJson.search(SEED) >= 0;
}

function randomSeed(): number {
  return Math.floor(Math.random() * MAX_SEED);
}
