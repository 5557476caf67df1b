/** A form in words: each part with its headers, its text, or the number of its bytes. */
export function multipartText(bytes: Buffer, contentType: string): string {
  const boundary = /boundary="?([^";]+)"?/i.exec(contentType)?.[1];
  if (boundary === undefined) return `(${bytes.length} bytes)`;
  const parts = bytes.toString('latin1').split(`--${boundary}`).slice(1);
  const shown = parts.filter((part) => !part.startsWith('--')).map(partText);
  return shown.join('\n\n');
}

const MAX_TEXT_CHARS = 2000;

function partText(part: string): string {
  const end = part.indexOf('\r\n\r\n');
  if (end < 0) return '(cut off)';
  const head = Buffer.from(part.slice(0, end), 'latin1').toString('utf8').trim();
  const body = part.slice(end + 4).replace(/\r\n$/, '');
  const isFile = /filename=/i.test(head);
  const text = Buffer.from(body, 'latin1').toString('utf8').slice(0, MAX_TEXT_CHARS);
  return `${head}\n\n${isFile ? `(${body.length} bytes)` : text}`;
}
