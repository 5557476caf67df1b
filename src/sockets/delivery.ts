export const NO_GROUPS: ReadonlySet<ReceiverGroup> = new Set();

/**
 * Which sockets have received the frames of one prompt, in this process and in others. Positions are
 * those of the prompt's event log.
 */
export class Delivery {
  readonly #clientId: string | null;
  readonly #received: Record<ReceiverGroup, number> = { client: 0, hosted: 0 };
  #receivedBefore: ReceivedUpTo = { client: 0, hosted: 0 };
  /** Ids of the sockets here that got some frame of the prompt. */
  #reachedIds: Set<string> | undefined;
  #last: { readonly position: number; readonly groups: ReadonlySet<ReceiverGroup> } = {
    position: 0,
    groups: NO_GROUPS,
  };

  /** `clientId`: the one the prompt named. */
  constructor(clientId: string | null) {
    this.#clientId = clientId;
  }

  /** True when sockets of the group had the frame before this process followed the prompt. */
  hadBefore(group: ReceiverGroup | undefined, position: number): boolean {
    return position > 0 && position <= this.#receivedBefore[group ?? 'hosted'];
  }

  /** Sockets of the groups had everything up to these positions before. */
  noteHadBefore(upTo: ReceivedUpTo): void {
    this.#receivedBefore = { ...upTo };
  }

  noteReached(sid: string): void {
    this.#reachedIds ??= new Set();
    this.#reachedIds.add(sid);
  }

  hasReached(sid: string): boolean {
    return this.#reachedIds?.has(sid) ?? false;
  }

  /** The groups that the frame at this position was sent to here. */
  noteSent(position: number, groups: ReadonlySet<ReceiverGroup>): void {
    this.#last = { position, groups };
  }

  /** The groups that got the last frame, if it came from this position. */
  groupsAt(position: number): readonly ReceiverGroup[] {
    return position > 0 && this.#last.position === position ? [...this.#last.groups] : [];
  }

  /** Sockets of other processes have received everything up to this position. */
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

  /** As far as is known, no socket got any frame of the prompt. */
  isUnreached(): boolean {
    const { client, hosted } = this.#received;
    return this.#reachedIds === undefined && client === 0 && hosted === 0;
  }
}

/** Position 0 means that positions do not matter: no other process has the prompt. */
function isAfter(position: number, upTo: number): boolean {
  return position === 0 || position > upTo;
}

/**
 * The sockets that get all frames of a prompt: those of its client id (`client`), and the other
 * hosted ones of its user (`hosted`). A frame received by `client` is delivered; one received by
 * `hosted` is still kept for `client`.
 */
export type ReceiverGroup = 'client' | 'hosted';

/** For each group, the position in the prompt's log up to which it has everything. */
export type ReceivedUpTo = { readonly [group in ReceiverGroup]: number };

/** When a process subscribed to a prompt: at its first entry, or later. */
export type SubscribedSince = 'its start' | 'later';
