import { setTimeout as delay } from 'node:timers/promises';
import { historyEntry } from '../translate/history.ts';
import type { Effect, PictureEffect, ProgressState } from '../translate/progress-state.ts';
import { endWord } from '../translate/status.ts';
import { sniffPreview } from '../wire/frames.ts';
import { type Json, stringifyJson } from '../wire/json.ts';
import type { LivePrompt } from './board.ts';
import type { Picture } from './channel.ts';
import type { FollowerDeps } from './follower.ts';
import { readWhole } from './whole-file.ts';

/** Says a prompt's effects on its channel, and writes its history before v1's last word. */
export type Speaker = { say(effect: Effect, state: ProgressState): Promise<void> };

export type SpeakerDeps = Pick<
  FollowerDeps,
  'jobs' | 'ledger' | 'board' | 'hub' | 'log' | 'onEnded'
>;

/** A disk that is full now may have room later; the outcome is kept until then. */
const REWRITE_MS = 1000;

export function createSpeaker(deps: SpeakerDeps, prompt: LivePrompt): Speaker {
  const { ledger, board, hub, log } = deps;
  const { channel } = prompt;
  const { user } = prompt.caller;

  async function end(effect: Effect & { kind: 'end' }, state: ProgressState): Promise<void> {
    // Most clients read the history in the same breath as v1's last frame.
    const outcome = outcomeOf(prompt, state);
    await persist(() => ledger.prompts.finish(prompt.key, outcome));
    deps.onEnded?.(outcome.statusWord);
    board.remove(prompt);
    hub.status(user);
    channel.send({ kind: 'json', message: effect.closing });
    hub.retire(channel);
    noteEnd(state);
  }

  function noteEnd({ startedAtMs, endedAtMs }: ProgressState): void {
    const ms = Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
    log.info({ user, promptId: prompt.promptId, ms }, 'prompt executed');
  }

  async function persist(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        log.error(
          { err: error, promptId: prompt.promptId },
          'history could not be written, trying again',
        );
        await delay(REWRITE_MS);
      }
    }
  }

  async function pictureOf(effect: PictureEffect): Promise<Picture | undefined> {
    const { nodeId, displayNodeId, essential } = effect;
    const bytes = 'bytes' in effect ? effect.bytes : await fetchBytes(effect.assetId);
    const mime = bytes && sniffPreview(bytes);
    return bytes === undefined || mime === undefined
      ? undefined
      : { nodeId, displayNodeId, essential, mime, bytes };
  }

  async function fetchBytes(assetId: string): Promise<Buffer | undefined> {
    const bytes = await readWhole(deps.jobs, { caller: prompt.caller, assetId });
    if (bytes.ok) return bytes.value;
    log.warn({ assetId }, 'a picture for the socket could not be read');
    return undefined;
  }

  return {
    async say(effect, state) {
      switch (effect.kind) {
        case 'json':
        case 'text':
          return channel.send(effect);
        case 'picture': {
          const picture = await pictureOf(effect.picture);
          return picture && channel.send({ kind: 'picture', picture });
        }
        case 'step': {
          const picture = effect.picture && (await pictureOf(effect.picture));
          const { state: progressState, progress } = effect;
          const plain = { kind: 'step', state: progressState, progress } as const;
          return channel.send(picture ? { ...plain, picture } : plain);
        }
        case 'end':
          return end(effect, state);
      }
    },
  };
}

function outcomeOf(prompt: LivePrompt, state: ProgressState) {
  return {
    entryJson: stringifyJson(historyEntry(state, prompt) as unknown as Json),
    statusWord: endWord(state.outcome ?? 'lost', state.error?.code),
    startedAtMs: state.startedAtMs,
    endedAtMs: state.endedAtMs ?? prompt.createdAtMs,
  };
}
