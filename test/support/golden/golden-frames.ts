import { type Json, isJsonObject, parseJson } from '../../../src/protocol/json.ts';
import { frameSummary, isStepSummary } from './golden-frame-summary.ts';
import { createTempNames } from './golden-normalize.ts';

/** The parts of a recording that are chance and are not compared. */
export type Tolerances = {
  /** `status` frames that other calls cause may come anywhere. */
  readonly floatingStatus?: true;
  /** Frames of different prompts may come in any order. */
  readonly byPrompt?: true;
  /** How many steps an interrupted node managed is up to the clock. */
  readonly anyTicks?: true;
  /** Sockets, or exchanges by number, that recorded what came of a fault not repeated here. */
  readonly without?: readonly (string | number)[];
  /**
   * Prompts that the original refuses and this server would accept. In their place goes one that both
   * refuse, which takes a number, too.
   */
  readonly refused?: readonly number[];
  /** Pictures that the server makes have other bytes, so their hashes and sizes differ; row `pixels`. */
  readonly otherBytes?: true;
};

type Named = { readonly summary: string; readonly frame: Json };

/** Frame by frame in order; a minus was recorded and is missing, a plus is ours alone. */
export function compareFrames(
  recorded: readonly Json[],
  mine: readonly Json[],
  { floatingStatus, byPrompt, anyTicks }: Tolerances,
): string[] {
  const named = (frames: readonly Json[]): Named[] => {
    const rename = createTempNames();
    return frames
      .map((frame) => parseJson(rename(JSON.stringify(frame))))
      .map((frame) => ({ summary: frameSummary(frame), frame: withoutGeneratedIds(frame) }))
      .filter(({ summary }) => anyTicks === undefined || !isStepSummary(summary));
  };
  const lineOf = ({ summary, frame }: Named): string => {
    if (summary.startsWith('S(')) return floatingStatus || byPrompt ? 'status' : '';
    // Lines of the log are written beside the run.
    if (summary === 'logs') return summary;
    return byPrompt ? ((frame as { data?: { prompt_id?: string } }).data?.prompt_id ?? '') : '';
  };
  const [theirs, ours] = [named(recorded), named(mine)];
  const lines = [...new Set([...theirs, ...ours].map(lineOf))];
  return lines.flatMap((line) => {
    const [left, right] = [theirs, ours].map((all) => all.filter((one) => lineOf(one) === line));
    const prefix = line === '' || !byPrompt ? '' : `${line}: `;
    return align(left ?? [], right ?? []).map((text) => prefix + text);
  });
}

/** A socket id the server made is as good as any other of its kind. */
function withoutGeneratedIds(frame: Json): Json {
  const sid = (frame as { data?: { sid?: string } }).data?.sid;
  if (sid === undefined || !/^[0-9a-f]{32}$/.test(sid)) return frame;
  return parseJson(JSON.stringify(frame).replace(sid, '<32 hex>'));
}

/** The longest common run of gists, then the contents of what lies side by side. */
function align(theirs: readonly Named[], ours: readonly Named[]): string[] {
  const row = (): number[] => Array.from({ length: ours.length + 1 }, () => 0);
  const lengths = Array.from({ length: theirs.length + 1 }, row);
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = theirs.length - 1; i >= 0; i--) {
    for (let j = ours.length - 1; j >= 0; j--) {
      const same = theirs[i]?.summary === ours[j]?.summary;
      (lengths[i] as number[])[j] = same
        ? at(i + 1, j + 1) + 1
        : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const found: string[] = [];
  let [i, j] = [0, 0];
  while (i < theirs.length || j < ours.length) {
    const [left, right] = [theirs[i], ours[j]];
    if (left && right && left.summary === right.summary) {
      const differing = compareJson(left.frame, right.frame, '');
      const reordered =
        differing.length === 0 && JSON.stringify(left.frame) !== JSON.stringify(right.frame);
      found.push(
        ...differing.map((text) => `${left.summary}: ${text}`),
        ...(reordered ? [`${left.summary}: key order`] : []),
      );
      i++;
      j++;
    } else if (right && (!left || at(i, j + 1) >= at(i + 1, j))) {
      found.push(`+ ${right.summary}`);
      j++;
    } else {
      found.push(`- ${left?.summary}`);
      i++;
    }
  }
  return found;
}

/** Leaves in which two values differ, with what ours holds. */
export function compareJson(
  theirs: Json | undefined,
  ours: Json | undefined,
  path: string,
): string[] {
  if (isJsonObject(theirs) && isJsonObject(ours)) {
    const keys = [...new Set([...Object.keys(theirs), ...Object.keys(ours)])];
    return keys.flatMap((key) =>
      compareJson(theirs[key], ours[key], path === '' ? key : `${path}.${key}`),
    );
  }
  if (Array.isArray(theirs) && Array.isArray(ours) && theirs.length === ours.length) {
    return theirs.flatMap((item: Json, index) =>
      compareJson(item, ours[index] as Json, `${path}[${index}]`),
    );
  }
  if (JSON.stringify(theirs) === JSON.stringify(ours)) return [];
  return [`${path} ${ours === undefined ? 'absent' : briefly(ours)}`];
}

function briefly(value: Json): string {
  const text = JSON.stringify(value);
  if (text.length <= 80 || typeof value !== 'object') return text;
  return Array.isArray(value) ? '[…]' : '{…}';
}
