import { type Readable, Transform, pipeline } from 'node:stream';

/** How the content of a part is written as text. */
type Encoding = {
  /** Removes characters that have no meaning. */
  readonly clean: (text: string) => string;
  /** Returns where the last complete unit ends in a text that continues. */
  readonly wholeLength: (text: string) => number;
  readonly decode: (text: string) => Buffer;
};

const BASE64: Encoding = {
  clean: (text) => text.replaceAll(/[^\w+/=-]/g, ''),
  wholeLength: ({ length }) => length - (length % 4),
  decode: (text) => Buffer.from(text, 'base64'),
};

const QUOTED_PRINTABLE: Encoding = {
  clean: (text) => text,
  wholeLength: (text) => text.length - (/=.?$/s.exec(text)?.[0].length ?? 0),
  decode: (text) =>
    Buffer.from(
      text
        .replaceAll(/=\r?\n/g, '')
        .replaceAll(/=([\da-f]{2})/gi, (_, hex: string) =>
          String.fromCharCode(Number.parseInt(hex, 16)),
        ),
      'latin1',
    ),
};

/** For other names, `constructor` included, the content is not encoded. */
const ENCODINGS: ReadonlyMap<string, Encoding> = new Map([
  ['base64', BASE64],
  ['quoted-printable', QUOTED_PRINTABLE],
]);

/**
 * Decodes a file of a form by its `Content-Transfer-Encoding`. RFC 7578 has dropped that header,
 * but form writers that are made from mail libraries send it, and v1 decodes.
 */
export function decodeFile(stream: Readable, encodingName: string): Readable {
  const encoding = ENCODINGS.get(encodingName);
  // A failure of one stream is a failure of the other. The reader of the result gets it.
  return encoding === undefined ? stream : pipeline(stream, createDecoder(encoding), () => {});
}

/** Decodes a text field by its `Content-Transfer-Encoding`. */
export function decodeField(value: string, encodingName: string): string {
  const encoding = ENCODINGS.get(encodingName);
  return encoding === undefined ? value : encoding.decode(encoding.clean(value)).toString('utf8');
}

function createDecoder({ clean, wholeLength, decode }: Encoding): Transform {
  let rest = '';
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const text = rest + clean(chunk.toString('latin1'));
      const length = wholeLength(text);
      rest = text.slice(length);
      done(null, decode(text.slice(0, length)));
    },
    flush(done) {
      done(null, decode(rest));
    },
  });
}
