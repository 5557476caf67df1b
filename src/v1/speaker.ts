import type { Effect, PictureEffect } from '../translate/progress-state.ts';
import { sniffPreview } from '../wire/frames.ts';
import type { LivePrompt } from './board.ts';
import type { Frame, Picture } from './frame.ts';
import { PREVIEW_HEAD_BYTES } from './prompt-journal.ts';
import type { TellerDeps } from './teller.ts';
import { readWhole } from './whole-file.ts';

/** Says a prompt's effects on its channel, all but the last. */
export type Speaker = { say(effect: Said, at: number): Promise<void> };

type Said = Exclude<Effect, { kind: 'end' }>;

export function createSpeaker(deps: TellerDeps, prompt: LivePrompt): Speaker {
  const { log } = deps;
  const { channel } = prompt;

  async function pictureOf(effect: PictureEffect): Promise<Picture | undefined> {
    const { nodeId, displayNodeId, kind } = effect;
    const bytes = 'bytes' in effect ? effect.bytes : await fetchBytes(effect.assetId);
    if (bytes === undefined || bytes.length <= PREVIEW_HEAD_BYTES) return undefined;
    const mime = sniffPreview(bytes);
    return mime && { nodeId, displayNodeId, kind, mime, bytes };
  }

  async function fetchBytes(assetId: string): Promise<Buffer | undefined> {
    const bytes = await readWhole(deps.jobs, { caller: prompt.caller, assetId });
    if (bytes.ok) return bytes.value;
    const { user } = prompt.caller;
    log.warn({ user, assetId }, 'a picture for the socket could not be read');
    return undefined;
  }

  async function frameOf(effect: Said): Promise<Frame | undefined> {
    if (effect.kind === 'json' || effect.kind === 'text') return effect;
    const picture = effect.picture && (await pictureOf(effect.picture));
    if (effect.kind === 'picture') return picture && { kind: 'picture', picture };
    const { state, progress } = effect;
    return { kind: 'step', ...(state && { state }), progress, ...(picture && { picture }) };
  }

  /** A result nobody here waits for, of a prompt another process looks after. */
  function canWait(effect: Said): boolean {
    const picture = 'picture' in effect ? effect.picture : undefined;
    if (picture === undefined || !('assetId' in picture)) return false;
    return !deps.journal.leads(prompt.key) && !channel.hasListener();
  }

  return {
    async say(effect, at) {
      if (canWait(effect)) return channel.sendLater(() => frameOf(effect), at);
      if (effect.kind === 'json' || effect.kind === 'text') return channel.send(effect, at);
      const frame = await frameOf(effect);
      if (frame) channel.send(frame, at);
    },
  };
}
