import { type Readable, Transform, pipeline } from 'node:stream';

/** The same bytes; breaks off with an error where fewer come than there are. */
export function noShorter(stream: Readable, bytes: number): Readable {
  let left = bytes;
  const counting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      done(null, chunk);
    },
    flush: (done) => done(left > 0 ? new Error(`${left} bytes of a file are missing`) : null),
  });
  // Whoever reads it hears of the error.
  pipeline(stream, counting, () => {});
  return counting;
}
