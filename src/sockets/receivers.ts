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
