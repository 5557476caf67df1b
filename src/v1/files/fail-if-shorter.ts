import { type Readable, Transform, pipeline } from 'node:stream';

/** Passes the bytes through; fails when the stream ends before `bytes` bytes. */
export function failIfShorter(stream: Readable, bytes: number): Readable {
  let missingBytes = bytes;
  const counting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      missingBytes -= chunk.length;
      done(null, chunk);
    },
    flush: (done) =>
      done(missingBytes > 0 ? new Error(`${missingBytes} bytes of a file are missing`) : null),
  });
  // The reader of the stream gets the error.
  pipeline(stream, counting, () => {});
  return counting;
}
