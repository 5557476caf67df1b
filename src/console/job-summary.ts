import { LRUCache } from 'lru-cache';
import type { PromptOutline, PromptRow, PromptStore } from '../ledger/ledger.ts';
import type { LivePrompt } from '../prompts/live-prompt.ts';
import { isSubmittedThroughV1 } from '../prompts/submitted-workflow.ts';
import { type Json, type JsonObject, isJsonObject, parseJson, memberOf } from '../protocol/json.ts';
import type { FileRef, HistoryEntry } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { errorMessage, outputsSummary } from '../translate/job-views.ts';
import { LISTED_STATUS, liveWord, wordOf } from '../translate/status.ts';
import { parseEntry } from '../translate/stored-history-entry.ts';
import type { JobSummary } from './api-types.ts';
import { isGraph } from './job-nodes.ts';
import { nodeCount } from './node-count.ts';

/** The facts about an ended prompt that never change. To read them, its history entry is parsed. */
type StoredFacts = Omit<
  JobSummary,
  'key' | 'id' | 'status' | 'created_at_ms' | 'started_at_ms' | 'ended_at_ms' | 'position'
>;

type GraphFacts = { readonly name: string; readonly node_count: number | null };

/** The facts of some ten thousand prompts. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The maximum size of an entry that is parsed for a list. */
const MAX_PARSED_BYTES = 1024 * 1024;

/**
 * Caches the latest summaries of ended prompts. The result returns the summary of one; `undefined` when the prompt was
 * deleted meanwhile.
 */
export function createEndedSummaries(
  prompts: PromptStore,
): (outline: PromptOutline) => Promise<JobSummary | undefined> {
  const cache = new LRUCache<string, StoredFacts>({
    maxSize: MAX_BYTES,
    sizeCalculation: (facts) => 2 * JSON.stringify(facts).length,
  });
  async function read(outline: PromptOutline): Promise<StoredFacts | undefined> {
    const row = await prompts.get(outline.key);
    return row && factsOf(row, outline.storedBytes);
  }

  return async (outline) => {
    const facts = cache.get(outline.key) ?? (await read(outline));
    if (facts === undefined) return undefined;
    cache.set(outline.key, facts);
    return endedSummary(outline, facts);
  };
}

function endedSummary(row: Omit<PromptOutline, 'storedBytes'>, facts: StoredFacts): JobSummary {
  return {
    key: row.key,
    id: row.promptId,
    ...facts,
    status: LISTED_STATUS[wordOf(row)],
    created_at_ms: row.createdAtMs,
    started_at_ms: row.startedAtMs,
    ended_at_ms: row.endedAtMs,
    position: null,
  };
}

/** Returns the summary of an ended prompt whose row has been read. */
export function summaryOfRow(row: PromptRow): JobSummary {
  return endedSummary(row, factsOf(row, 0));
}

function factsOf(row: PromptRow, storedBytes: number): StoredFacts {
  const known = {
    job_id: row.jobId,
    client_id: row.clientId,
    api: isSubmittedThroughV1(row) ? 'v1' : 'v2',
  } as const;
  if (row.entryJson === null || storedBytes > MAX_PARSED_BYTES) {
    const unread = { node_count: null, outputs_count: 0, preview: null, error: null };
    return { ...known, ...unread, name: row.promptId };
  }
  const entry = parseEntry(row, 'own');
  const [, , graph, extraData] = entry.prompt;
  return {
    ...known,
    ...graphFacts(graph as Graph | null, extraData, row.promptId),
    ...outputFacts(entry),
  };
}

function outputFacts(entry: HistoryEntry) {
  const { outputs_count: count, preview_output: preview } = outputsSummary(entry);
  const message = memberOf(errorMessage(entry), 'exception_message');
  return {
    outputs_count: Number(count ?? 0),
    preview: isJsonObject(preview) ? fileRefOf(preview) : null,
    error: typeof message === 'string' ? message.trim() : null,
  };
}

/** Returns the file that an output names; `null` when it names none. */
export function fileRefOf({ filename, subfolder, type }: JsonObject): FileRef | null {
  if (typeof filename !== 'string') return null;
  return {
    filename,
    subfolder: typeof subfolder === 'string' ? subfolder : '',
    type: type as FileRef['type'],
  };
}

/** Returns the summary of a live prompt. `position`: its place among those that wait. */
export function liveSummary(prompt: LivePrompt, position: number | null): JobSummary {
  const { key, promptId, jobId, clientId, createdAtMs, startedAtMs } = prompt;
  return {
    key,
    id: promptId,
    job_id: jobId,
    client_id: clientId,
    api: prompt.isV2Job ? 'v2' : 'v1',
    ...liveGraphFacts(prompt),
    status: LISTED_STATUS[liveWord(prompt)],
    created_at_ms: createdAtMs,
    started_at_ms: startedAtMs,
    ended_at_ms: null,
    outputs_count: 0,
    preview: null,
    error: null,
    position,
  };
}

/**
 * Returns the facts about the graph of a live prompt. Thousands of prompts may wait with unloaded graphs, so a large
 * unloaded graph is not parsed, and the prompt is shown without its name.
 */
function liveGraphFacts({ lazy, promptId }: LivePrompt): GraphFacts {
  const { graph, extraData } = lazy;
  const isLarge = (graph.json?.length ?? 0) + (extraData.json?.length ?? 0) > MAX_PARSED_BYTES;
  if (graph.value === undefined && isLarge) return { name: promptId, node_count: null };
  const graphValue = graph.value ?? (parseJson(graph.json ?? 'null') as Graph | null);
  const extraValue = extraData.value ?? parseJson(extraData.json ?? 'null');
  return graphFacts(graphValue, extraValue, promptId);
}

function graphFacts(graph: Graph | null, extraData: Json, promptId: string): GraphFacts {
  const nodes = isGraph(graph) ? Object.values(graph) : [];
  const name = workflowName(extraData) ?? graphName(nodes) ?? promptId;
  return { name, node_count: isGraph(graph) ? nodes.length : null };
}

/**
 * Returns the name that a front end gave the workflow. Front ends and their extensions use several
 * members.
 */
function workflowName(extraData: Json): string | undefined {
  const workflow = memberOf(memberOf(extraData, 'extra_pnginfo'), 'workflow');
  const extra = memberOf(workflow, 'extra');
  const names = [
    memberOf(workflow, 'name'),
    memberOf(workflow, 'title'),
    memberOf(extra, 'workflow_name'),
    memberOf(extra, 'name'),
    memberOf(memberOf(extra, 'info'), 'name'),
    memberOf(extraData, 'workflow_name'),
  ];
  return names.find((name): name is string => typeof name === 'string' && name.trim() !== '');
}

/** Returns the prefix of the output files and the number of nodes. */
function graphName(nodes: readonly Graph[string][]): string | undefined {
  if (nodes.length === 0) return undefined;
  const prefixes = nodes.map((node) => node.inputs?.['filename_prefix']);
  const prefix = prefixes.find((text): text is string => typeof text === 'string' && text !== '');
  const last = nodes.at(-1)?.class_type ?? '';
  return `${prefix ?? last} · ${nodeCount(nodes.length)}`;
}
