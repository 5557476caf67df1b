import { parseJson } from '../../protocol/json.ts';
import { numberedName, savePath } from '../image/save-path.ts';
import type { NodeContext, NodeDef } from '../node.ts';
import { combo, entryOf, typedNode } from '../typed-node.ts';
import { reserveText } from './pieces.ts';
import { jsonLines, withinRoom } from './text-node.ts';

const CONTENT_TYPES = {
  txt: 'text/plain',
  csv: 'text/csv',
  md: 'text/markdown',
  json: 'application/json',
} as const;

/** The prefix of a text has no picture whose size it could name. */
const NO_PICTURE = { width: 1, height: 1 };

/** The size of a parsed JSON text in characters of the text. */
const PARSED_SIZE = 8;

/** The node that keeps a text as a file. */
export const SAVE_TEXT_NODE: NodeDef = typedNode({
  name: 'SaveText',
  displayName: 'Save Text',
  description: 'Keeps a text as a file among the outputs.',
  category: 'text',
  pythonModule: 'comfy_extras.nodes_text',
  style: 'v3',
  required: {
    text: ['STRING', { forceInput: true, multiline: false }],
    filename_prefix: ['STRING', { default: 'ComfyUI', multiline: false }],
    format: combo(Object.keys(CONTENT_TYPES), { default: 'txt' }),
  },
  hidden: { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' },
  outputs: [{ type: 'STRING', name: 'text' }],
  outputNode: true,
  async run({ text, filename_prefix: prefix, format }, context) {
    const contentType = entryOf(CONTENT_TYPES, format, ['ValueError', 'Unknown format']);
    const { subfolder, stem } = savePath(prefix, { ...NO_PICTURE, now: new Date() });
    const content = format === 'json' ? indented(text, context) : text;
    reserveText(context, content.length);
    const bytes = new TextEncoder().encode(content);
    const name = numberedName(stem, `.${format}`);
    const file = await context.save({ bytes, name, subfolder, contentType, temp: false });
    return { outputs: [text], ui: { text: [withinRoom(text, context)], files: [file] } };
  },
});

/** Returns JSON with a line for each item; a text that is no JSON stays as it is. */
function indented(text: string, context: NodeContext): string {
  reserveText(context, PARSED_SIZE * text.length);
  try {
    return jsonLines(parseJson(text), '  ', context);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
