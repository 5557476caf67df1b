export const NO_GROUPS: ReadonlySet<ReceiverGroup> = new Set();

/**
 * Which sockets have received the frames of one prompt, in this process and in others. Positions
 * are those of the prompt's event log.
 */
export class Delivery {
  readonly #clientId: string | null;
  readonly #received: Record<ReceiverGroup, number> = { client: 0, hosted: 0 };
  #receivedBefore: ReceivedUpTo = { client: 0, hosted: 0 };
  /** The ids of the sockets here that got at least one frame of the prompt. */
  readonly #reachedIds = new Set<string>();
  #last: { readonly position: number; readonly groups: ReadonlySet<ReceiverGroup> } = {
    position: 0,
    groups: NO_GROUPS,
  };

  /** `clientId`: the client id that the prompt named. */
  constructor(clientId: string | null) {
    this.#clientId = clientId;
  }

  /** True when sockets of the group had the frame before this process followed the prompt. */
  hadBefore(group: ReceiverGroup | undefined, position: number): boolean {
    return position > 0 && position <= this.#receivedBefore[group ?? 'hosted'];
  }

  /** Records that sockets of the groups had everything up to these positions before. */
  noteHadBefore(upTo: ReceivedUpTo): void {
    this.#receivedBefore = { ...upTo };
  }

  noteReached(sid: string): void {
    this.#reachedIds.add(sid);
  }

  hasReached(sid: string): boolean {
    return this.#reachedIds.has(sid);
  }

  /** Records the groups here that the frame at this position was sent to. */
  noteSent(position: number, groups: ReadonlySet<ReceiverGroup>): void {
    this.#last = { position, groups };
  }

  /** Returns the groups that got the last frame, if that frame is at this position. */
  groupsAt(position: number): readonly ReceiverGroup[] {
    return position > 0 && this.#last.position === position ? [...this.#last.groups] : [];
  }

  /** Records that sockets of other processes have received everything up to this position. */
  noteReceived(group: ReceiverGroup, upTo: number): void {
    this.#received[group] = Math.max(this.#received[group], upTo);
  }

  /** True when a socket may connect that lacks the frame at this position. */
  mayBeLacking(position: number, groups: ReadonlySet<ReceiverGroup>): boolean {
    if (this.#clientId === null) return this.isUndelivered(position, groups);
    return !groups.has('client') && isAfter(position, this.#received.client);
  }

  /** True when no socket anywhere has the frame at this position. */
  isUndelivered(position: number, groups: ReadonlySet<ReceiverGroup>): boolean {
    const { client, hosted } = this.#received;
    return groups.size === 0 && isAfter(position, Math.max(client, hosted));
  }

  /** True when, as far as this process knows, no socket got a frame of the prompt. */
  isUnreached(): boolean {
    const { client, hosted } = this.#received;
    return this.#reachedIds.size === 0 && client === 0 && hosted === 0;
  }
}

/** Position 0 means that positions do not matter: no other process has the prompt. */
function isAfter(position: number, upTo: number): boolean {
  return position === 0 || position > upTo;
}

/**
 * The sockets that get all frames of a prompt. `client`: those of its client id. `hosted`: the
 * other hosted ones of its user. A frame that `client` received is delivered; one that only
 * `hosted` received is kept for `client`.
 */
export type ReceiverGroup = 'client' | 'hosted';

/** For each group, the position in the prompt's log up to which the group has all frames. */
export type ReceivedUpTo = { readonly [group in ReceiverGroup]: number };

/** When a process subscribed to a prompt: at its first entry, or later. */
export type SubscribedSince = 'its start' | 'later';
