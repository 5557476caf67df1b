type Closable = { close(): Promise<void> | void };

/** Calls `work` with something that is open, and closes it afterwards, also after an error. */
export async function withOpen<Opened extends Closable | undefined, Result>(
  opened: Opened,
  work: (opened: Opened) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(opened);
  } finally {
    await opened?.close();
  }
}
