import { type Frame, activeNodeIn } from './frame.ts';

/** The running node of a prompt with its latest step and preview, for sockets that start to watch. */
export class CurrentFrames {
  #frames: Map<Frame['kind'], Frame> | undefined;
  #activeNode: string | null = null;

  /** The id of the running node; `null`: no node runs. */
  activeNode(): string | null {
    return this.#activeNode;
  }

  all(): Iterable<Frame> {
    return this.#frames?.values() ?? [];
  }

  /** Takes in a frame. Returns true when the frame says which node runs from now on. */
  remember(frame: Frame): boolean {
    const node = activeNodeIn(frame);
    if (node !== undefined) this.#activeNode = node;
    if (frame.kind === 'text') return node !== undefined;
    if (frame.kind !== 'json') {
      if (frame.picture?.kind !== 'result') this.#set(frame);
    } else if (node !== undefined) {
      this.#frames?.clear();
      if (node !== null) this.#set(frame);
    }
    return node !== undefined;
  }

  #set(frame: Frame): void {
    this.#frames ??= new Map();
    this.#frames.set(frame.kind, frame);
  }
}
