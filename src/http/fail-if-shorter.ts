import { type Readable, Transform, pipeline } from 'node:stream';

/** The same bytes; breaks off with an error where fewer come than there are. */
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
  // Whoever reads it hears of the error.
  pipeline(stream, counting, () => {});
  return counting;
}
