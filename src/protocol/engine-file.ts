import { parseObject } from './json.ts';

/** A file as the engine of the self-hosted server names it. */
export type EngineFile = {
  readonly name: string;
  readonly subfolder: string;
  readonly type: 'output' | 'temp';
  /** The job that made the file. */
  readonly jobId?: string;
};

/**
 * Reads the engine's file from an output id. The self-hosted server stores no records of outputs:
 * its output id is a payload that names the file, and a signature.
 */
export function engineFileOf(assetId: string): EngineFile | undefined {
  const [payload = '', signature] = assetId.split('.');
  const fields = signature && parseObject(Buffer.from(payload, 'base64url').toString());
  if (!fields) return undefined;
  const { f: name, s: subfolder, t: type, j: jobId } = fields;
  if (typeof name !== 'string' || typeof subfolder !== 'string') return undefined;
  if (type !== 'output' && type !== 'temp') return undefined;
  return { name, subfolder, type, ...(typeof jobId === 'string' && { jobId }) };
}

/** True when both ids name the same engine file, whichever job made it. */
export function isSameEngineFile(oneId: string, otherId: string): boolean {
  const [one, other] = [engineFileOf(oneId), engineFileOf(otherId)];
  return (
    one !== undefined &&
    one.name === other?.name &&
    one.subfolder === other.subfolder &&
    one.type === other.type
  );
}
