// RFC 9112, read strictly: the requests and answers that are in the bytes of a connection.

type RequestRead = {
  readonly target: string;
  readonly isHead: boolean;
  readonly expects: string;
  /** The fault. Nothing behind it can be read. */
  readonly fault: 'head' | 'body' | undefined;
};

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const REQUEST_LINE = new RegExp(`^(${TOKEN}) (\\S+) HTTP/1\\.1$`);
const HEADER = new RegExp(`^(${TOKEN}):[ \\t]*([\\t\\x20-\\x7e\\x80-\\xff]*?)[ \\t]*$`);

type Head = { readonly lines: readonly string[]; readonly end: number };
type Body = { readonly text: string; readonly end: number };

function readHead(text: string, from: number): Head | undefined {
  const end = text.indexOf('\r\n\r\n', from);
  return end < 0 ? undefined : { lines: text.slice(from, end).split('\r\n'), end: end + 4 };
}

function readChunks(text: string, from: number): Body | undefined {
  let body = '';
  for (let at = from; ;) {
    const lineEnd = text.indexOf('\r\n', at);
    const [, digits] = /^([0-9a-f]+)(?:;.*)?$/i.exec(text.slice(at, Math.max(at, lineEnd))) ?? [];
    if (digits === undefined) return undefined;
    const size = Number.parseInt(digits, 16);
    // The end of the last chunk, its trailers and the empty line have the form of a head.
    if (size === 0) {
      const trailers = readHead(text, lineEnd);
      return trailers && { text: body, end: trailers.end };
    }
    const end = lineEnd + 2 + size;
    if (text.slice(end, end + 2) !== '\r\n') return undefined;
    body += text.slice(lineEnd + 2, end);
    at = end + 2;
  }
}

/** The values of a header, one for each line. */
type ValuesOf = (name: string) => readonly string[];

function valuesIn(headers: readonly (RegExpExecArray | null)[]): ValuesOf {
  return (name) => headers.flatMap((each) => (each?.[1]?.toLowerCase() === name ? each[2]! : []));
}

function hasOneFraming(valuesOf: ValuesOf): boolean {
  const lengths = valuesOf('content-length');
  const codings = valuesOf('transfer-encoding');
  const isReadable =
    lengths.every((length) => /^\d+$/.test(length)) &&
    codings.every((coding) => coding.toLowerCase() === 'chunked');
  return isReadable && lengths.length + codings.length <= 1;
}

function readBody(text: string, from: number, valuesOf: ValuesOf): Body | undefined {
  if (valuesOf('transfer-encoding').length > 0) return readChunks(text, from);
  const end = from + Number(valuesOf('content-length')[0] ?? 0);
  return end > text.length ? undefined : { text: text.slice(from, end), end };
}

/** The requests of a connection, up to the first that is refused or that closes it. */
export function readRequests(
  text: string,
  limits: { readonly bytes: number; readonly headers: number },
): readonly RequestRead[] {
  const requests: RequestRead[] = [];
  for (let at = 0; at < text.length;) {
    const head = readHead(text, at) ?? { lines: [], end: Number.POSITIVE_INFINITY };
    const [first = '', ...lines] = head.lines;
    const [, method = '', target = ''] = REQUEST_LINE.exec(first) ?? [];
    const headers = lines.map((line) => HEADER.exec(line));
    const valuesOf = valuesIn(headers);
    const isWithinLimits = head.end - at <= limits.bytes && lines.length <= limits.headers;
    const isReadable = target !== '' && !headers.includes(null) && hasOneFraming(valuesOf);
    const isHeadGood = isWithinLimits && isReadable;
    const body = isHeadGood ? readBody(text, head.end, valuesOf) : undefined;
    const fault = isHeadGood ? (body ? undefined : 'body') : 'head';
    const expects = valuesOf('expect').join();
    requests.push({ target, isHead: method === 'HEAD', expects, fault });
    if (body === undefined || valuesOf('connection').join().includes('close')) break;
    at = body.end;
  }
  return requests;
}

/** An answer that is no interim one. */
type AnswerRead = { readonly status: number; readonly body: string; readonly closes: boolean };

/** The answers to these requests. Throws at bytes that are no answer to one of them. */
export function readAnswers(text: string, requests: readonly RequestRead[]): readonly AnswerRead[] {
  const answers: AnswerRead[] = [];
  for (let at = 0; at < text.length;) {
    const head = readHead(text, at);
    const [first = '', ...lines] = head?.lines ?? [];
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1]);
    const headers = lines.map((line) => HEADER.exec(line));
    if (head === undefined || !(status >= 100) || headers.includes(null))
      throw new Error(`no answer: ${text.slice(at, at + 200)}`);
    at = head.end;
    if (status < 200) continue;
    const request = requests[answers.length];
    if (request === undefined || answers.at(-1)?.closes === true)
      throw new Error(`an answer too many: ${text.slice(at, at + 200)}`);
    const valuesOf = valuesIn(headers);
    const body = request.isHead ? { text: '', end: at } : readBody(text, at, valuesOf);
    if (body === undefined) throw new Error(`no body: ${text.slice(at, at + 200)}`);
    answers.push({ status, body: body.text, closes: valuesOf('connection').includes('close') });
    at = body.end;
  }
  return answers;
}
