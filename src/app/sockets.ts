import type { JsonObject } from '../protocol/json.ts';
import type { Config } from '../config/config.ts';
import type { FrameObserver } from '../observability/traffic-log.ts';
import type { LivePrompts } from '../prompts/live-prompts.ts';
import type { PromptEventLog } from '../prompts/prompt-event-log.ts';
import { Hub } from '../sockets/hub.ts';
import type { Observers, Traffic } from './observers.ts';

/** The feature flags of the server, in `/features` and on every WebSocket. */
export function featuresOf({ maxUploadBytes, assets }: Config): JsonObject {
  return {
    supports_preview_metadata: true,
    supports_model_type_tags: true,
    max_upload_size: maxUploadBytes,
    extension: { manager: { supports_v4: true } },
    node_replacements: true,
    assets,
  };
}

type SocketParts = {
  readonly live: LivePrompts;
  readonly eventLog: PromptEventLog;
  readonly observers: Observers;
};

export function createSockets(config: Config, { live, eventLog, observers }: SocketParts): Hub {
  return new Hub({
    remaining: (user) => live.count(user),
    serverFlags: featuresOf(config),
    previewMethod: config.previewMethod,
    onPresenceChange: (user, isThere) => eventLog.watch(user, isThere),
    log: observers.log,
    frameObserver: frameObserverOf(observers.traffic),
  });
}

function frameObserverOf({ log, recorder }: Traffic): FrameObserver {
  const { frames: recorded } = recorder;
  if (!log) return recorded;
  return {
    isOn: () => true,
    record(frame) {
      log.frame(frame);
      if (recorded.isOn()) recorded.record(frame);
    },
  };
}
