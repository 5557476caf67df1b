import type { ProgressEffect, PictureEffect } from '../../translate/progress-state.ts';
import { sniffPreview } from '../../protocol/binary-frames.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { Frame, Picture } from '../../sockets/frame.ts';
import { PREVIEW_HEAD_BYTES, type PromptEventLog } from '../prompt-event-log.ts';
import type { JobApi } from '../../protocol/job-api.ts';
import type { Logger } from '../../observability/log.ts';
import { readImageBytes } from '../../files/asset-content.ts';

/** Sends the effects of a prompt to its channel, all but the end. */
export type FrameSender = { send(effect: FrameEffect, position: number): Promise<void> };

type FrameEffect = Exclude<ProgressEffect, { kind: 'end' }>;

export type FrameSenderOptions = {
  readonly jobs: JobApi;
  readonly promptEventLog: Pick<PromptEventLog, 'isLeader'>;
  readonly log: Logger;
};

export function createFrameSender(deps: FrameSenderOptions, prompt: LivePrompt): FrameSender {
  const { log } = deps;
  const { channel } = prompt;

  async function toPicture(effect: PictureEffect): Promise<Picture | undefined> {
    const { nodeId, displayNodeId, kind } = effect;
    const bytes = 'bytes' in effect ? effect.bytes : await fetchBytes(effect.assetId);
    if (bytes === undefined || bytes.length <= PREVIEW_HEAD_BYTES) return undefined;
    const mime = sniffPreview(bytes);
    return mime && { nodeId, displayNodeId, kind, mime, bytes };
  }

  async function fetchBytes(assetId: string): Promise<Buffer | undefined> {
    const bytes = await readImageBytes(deps.jobs, { caller: prompt.caller, assetId });
    if (bytes.ok) return bytes.value;
    const { user } = prompt.caller;
    log.warn(
      { event: 'socket.picture_failed', user, assetId },
      'could not read a picture for the sockets',
    );
    return undefined;
  }

  async function toFrame(effect: FrameEffect): Promise<Frame | undefined> {
    if (effect.kind === 'json' || effect.kind === 'text') return effect;
    const picture = effect.picture && (await toPicture(effect.picture));
    if (effect.kind === 'picture') return picture && { kind: 'picture', picture };
    const { state, progress } = effect;
    return { kind: 'step', ...(state && { state }), progress, ...(picture && { picture }) };
  }

  /** True for a result that no socket here waits for, of a prompt another process owns. */
  function canSendLater(effect: FrameEffect): boolean {
    const picture = 'picture' in effect ? effect.picture : undefined;
    if (picture === undefined || !('assetId' in picture)) return false;
    return !deps.promptEventLog.isLeader(prompt.key) && !channel.hasListener();
  }

  return {
    async send(effect, position) {
      if (canSendLater(effect)) return channel.sendLater(() => toFrame(effect), position);
      if (effect.kind === 'json' || effect.kind === 'text') return channel.send(effect, position);
      const frame = await toFrame(effect);
      if (frame) channel.send(frame, position);
    },
  };
}
