const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);

/**
 * Returns the texts of all elements with this name, in order. S3's answers nest no element in one
 * of the same name.
 */
export function textsOf(xml: string, name: string): readonly string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([^]*?)</${name}>`, 'g');
  return [...xml.matchAll(pattern)].map(([, text = '']) => text);
}

/** Returns the text of the first element with this name, with its entities decoded. */
export function textOf(xml: string, name: string): string | undefined {
  const [text] = textsOf(xml, name);
  return text === undefined ? undefined : decoded(text);
}

function decoded(text: string): string {
  return text.replaceAll(/&(#x?[0-9a-fA-F]+|\w+);/g, (whole, entity: string) => {
    if (entity.startsWith('#x')) return String.fromCodePoint(Number.parseInt(entity.slice(2), 16));
    if (entity.startsWith('#')) return String.fromCodePoint(Number(entity.slice(1)));
    return ENTITIES.get(entity) ?? whole;
  });
}

/** Escapes a text for an element. */
export function escapedXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
