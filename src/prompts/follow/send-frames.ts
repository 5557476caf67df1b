import { readImageBytes } from '../../files/asset-content.ts';
import { sniffPreview } from '../../protocol/binary-frames.ts';
import type { Frame, Picture } from '../../sockets/frame.ts';
import type { PictureEffect, ProgressEffect } from '../../translate/progress-state.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { PREVIEW_HEAD_BYTES } from '../prompt-event-log.ts';

type FrameSenderOptions = Pick<PromptContext, 'jobs' | 'promptEventLog' | 'log'>;

type FrameEffect = Exclude<ProgressEffect, { kind: 'end' }>;

/** Last stage of the progress pipeline: sends the effects of a prompt to its channel, all but the end. */
export class FrameSender {
  readonly #prompt: LivePrompt;
  readonly #options: FrameSenderOptions;

  constructor(prompt: LivePrompt, options: FrameSenderOptions) {
    this.#prompt = prompt;
    this.#options = options;
  }

  async send(effect: FrameEffect, position: number): Promise<void> {
    const { channel } = this.#prompt;
    if (this.#canSendLater(effect)) {
      return channel.sendLater(() => this.#toFrame(effect), position);
    }
    if (effect.kind === 'json' || effect.kind === 'text') return channel.send(effect, position);
    const frame = await this.#toFrame(effect);
    if (frame) channel.send(frame, position);
  }

  /** True for a result that no socket here waits for, of a prompt another process owns. */
  #canSendLater(effect: FrameEffect): boolean {
    const { key, channel } = this.#prompt;
    const picture = 'picture' in effect ? effect.picture : undefined;
    if (picture === undefined || !('assetId' in picture)) return false;
    return !this.#options.promptEventLog.isLeader(key) && !channel.hasListener();
  }

  async #toFrame(effect: FrameEffect): Promise<Frame | undefined> {
    if (effect.kind === 'json' || effect.kind === 'text') return effect;
    const picture = effect.picture && (await this.#toPicture(effect.picture));
    if (effect.kind === 'picture') return picture && { kind: 'picture', picture };
    const { state, progress } = effect;
    return { kind: 'step', ...(state && { state }), progress, ...(picture && { picture }) };
  }

  async #toPicture(effect: PictureEffect): Promise<Picture | undefined> {
    const { nodeId, displayNodeId, kind } = effect;
    const bytes = 'bytes' in effect ? effect.bytes : await this.#fetch(effect.assetId);
    if (bytes === undefined || bytes.length <= PREVIEW_HEAD_BYTES) return undefined;
    const mime = sniffPreview(bytes);
    return mime && { nodeId, displayNodeId, kind, mime, bytes };
  }

  async #fetch(assetId: string): Promise<Buffer | undefined> {
    const { caller } = this.#prompt;
    const bytes = await readImageBytes(this.#options.jobs, { caller, assetId });
    if (bytes.ok) return bytes.value;
    const facts = { event: 'socket.picture_failed', user: caller.user, assetId };
    this.#options.log.warn(facts, 'could not read a picture for the sockets');
    return undefined;
  }
}
