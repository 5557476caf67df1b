import { readImageBytes } from '../../files/asset-content.ts';
import { sniffPreview } from '../../protocol/binary-frames.ts';
import type { Frame } from '../../sockets/frame.ts';
import type { FrameOf, Picture, PictureEffect } from '../../translate/progress/progress-state.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { PREVIEW_HEAD_BYTES } from '../prompt-event-log.ts';

type FrameEffect = FrameOf<PictureEffect>;

type FetchedPicture = Extract<PictureEffect, { readonly assetId: string }>;

/**
 * Last stage of the progress pipeline: sends the effects of a prompt to its channel, except the
 * end.
 */
export class FrameSender {
  readonly #prompt: LivePrompt;
  readonly #ports: PromptPorts;

  constructor(prompt: LivePrompt, ports: PromptPorts) {
    this.#prompt = prompt;
    this.#ports = ports;
  }

  /**
   * Sends the effect, or keeps it for a late socket. `undefined`: that is done; only a picture that
   * has to be fetched takes time.
   */
  send(effect: FrameEffect, position: number): Promise<void> | undefined {
    const picture = 'picture' in effect ? effect.picture : undefined;
    if (picture && 'assetId' in picture) return this.#sendFetched(effect, picture, position);
    const frame = toFrame(effect, picture && toPicture(picture, picture.bytes));
    if (frame) this.#prompt.channel.send(frame, position);
    return undefined;
  }

  async #sendFetched(
    effect: FrameEffect,
    picture: FetchedPicture,
    position: number,
  ): Promise<void> {
    const { channel } = this.#prompt;
    const load = async (): Promise<Frame | undefined> =>
      toFrame(effect, toPicture(picture, await this.#fetch(picture.assetId)));
    if (!this.#hasReceiver()) return channel.sendLater(load, position);
    const frame = await load();
    if (frame) channel.send(frame, position);
  }

  /** False when no socket here waits for the result and another process leads the prompt. */
  #hasReceiver(): boolean {
    const { key, channel } = this.#prompt;
    return this.#ports.records.eventLog.isLeader(key) || channel.hasListener();
  }

  async #fetch(assetId: string): Promise<Buffer | undefined> {
    const { caller } = this.#prompt;
    let err: unknown;
    try {
      const bytes = await readImageBytes(this.#ports.jobs.api, { caller, assetId });
      if (bytes.ok) return bytes.value;
    } catch (error) {
      err = error;
    }
    const facts = { event: 'socket.picture_failed', user: caller.user, assetId, err };
    this.#ports.frames.log.warn(facts, 'could not read a picture for the sockets');
    return undefined;
  }
}

function toFrame(effect: FrameEffect, picture: Picture | undefined): Frame | undefined {
  if (effect.kind === 'json' || effect.kind === 'text') return effect;
  if (effect.kind === 'picture') return picture && { kind: 'picture', picture };
  const { picture: _, ...step } = effect;
  return { ...step, ...(picture && { picture }) };
}

function toPicture(effect: PictureEffect, bytes: Uint8Array | undefined): Picture | undefined {
  if (bytes === undefined || bytes.length <= PREVIEW_HEAD_BYTES) return undefined;
  const { nodeId, displayNodeId, kind } = effect;
  const mime = sniffPreview(bytes);
  return mime && { nodeId, displayNodeId, kind, mime, bytes };
}
