/**
 * A request to stop some work, with a reason. The first reason counts. It needs far less memory
 * than an `AbortSignal`, which for thousands of waiting jobs takes megabytes.
 */
export class StopRequest<Reason extends string> {
  #reason: Reason | undefined;
  #listeners: readonly ((reason: Reason) => void)[] | undefined;

  /** `undefined`: no stop was requested. */
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

  /**
   * Calls `listener` on the request, at once if it was made before. Call the result to unsubscribe.
   */
  onRequest(listener: (reason: Reason) => void): () => void {
    if (this.#reason !== undefined) listener(this.#reason);
    else this.#listeners = [...(this.#listeners ?? []), listener];
    return () => (this.#listeners = this.#listeners?.filter((other) => other !== listener));
  }
}
