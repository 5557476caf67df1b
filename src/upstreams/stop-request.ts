/**
 * A request to stop some work, with a reason: the first one counts. Unlike an `AbortSignal` it takes next
 * to no memory, of which thousands of waiting jobs would take megabytes.
 */
export class StopRequest<Reason extends string> {
  #reason: Reason | undefined;
  #listeners: readonly ((reason: Reason) => void)[] | undefined;

  /** `undefined`: nothing is to stop. */
  get reason(): Reason | undefined {
    return this.#reason;
  }

  request(reason: Reason): void {
    if (this.#reason !== undefined) return;
    this.#reason = reason;
    const listeners = this.#listeners ?? [];
    this.#listeners = undefined;
    for (const listener of listeners) listener(reason);
  }

  /** Calls back on the request, at once if it was made before. Call the result to take this back. */
  onRequest(listener: (reason: Reason) => void): () => void {
    if (this.#reason !== undefined) listener(this.#reason);
    else this.#listeners = [...(this.#listeners ?? []), listener];
    return () => (this.#listeners = this.#listeners?.filter((other) => other !== listener));
  }
}
