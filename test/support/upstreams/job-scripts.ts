import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type HostileV2, type JobScript, type WireJob, output } from './hostile-v2.ts';

const OVER = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** The name a job's only output has: the one its workflow asked for. */
export function nameOf(job: WireJob): string {
  return `${prefixOf(job['workflow'])}_00001_.png`;
}

/** The `filename_prefix` of the workflow's saving node, by which a test recognises a prompt. */
export function prefixOf(workflow: unknown): string {
  const nodes = Object.values((workflow ?? {}) as Record<string, { inputs?: any }>);
  return String(nodes.find(({ inputs }) => inputs?.filename_prefix)?.inputs.filename_prefix);
}

/** A whole run as correct servers report it. */
export function runsToCompletion(
  options: { readonly steps?: number; readonly pauseMs?: number; readonly waitMs?: number } = {},
): JobScript {
  const { steps = 3, pauseMs = 10, waitMs = 25 } = options;
  return async (job, server) => {
    await delay(waitMs);
    if (!advance(server, job, { status: 'running' })) return;
    for (let step = 1; step <= steps; step += 1) {
      await delay(pauseMs);
      if (OVER.has(job.status)) return;
      const progress = progressAt(step, steps);
      server.change(job.id, { progress });
      server.emit(job.id, 'progress', progress);
      server.emit(job.id, 'preview', preview());
    }
    await delay(pauseMs);
    finish(server, job);
  };
}

/** Takes up its work and stays at it until a test says otherwise. */
export const staysRunning: JobScript = async (job, server) => {
  await delay(5);
  advance(server, job, { status: 'running' });
};

/** Ends a job well, with one output. */
export function finish(server: HostileV2, job: WireJob, fields: object = {}): void {
  const made = outputOf(job, fields);
  if (OVER.has(job.status)) return;
  Object.assign(job, { outputs: [...job['outputs'], made] });
  server.emit(job.id, 'output', made);
  server.change(job.id, { status: 'succeeded', completed_at: new Date().toISOString() });
}

export function outputOf(job: WireJob, fields: object = {}): object {
  return output({ id: `out-${randomUUID()}`, name: nameOf(job), ...fields });
}

export function progressAt(step: number, steps: number): object {
  const value = step / steps;
  return { value, nodes_done: 0, nodes_total: 2, current_node: '1', step, steps };
}

export function preview(bytes: Buffer = Buffer.from('a picture')): object {
  return { node_id: '1', content_type: 'image/jpeg', data_base64: bytes.toString('base64') };
}

function advance(server: HostileV2, job: WireJob, fields: Partial<WireJob>): boolean {
  if (OVER.has(job.status)) return false;
  server.change(job.id, fields);
  return true;
}
