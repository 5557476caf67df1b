// Builds Holdover's own page from `page` into `dist/page`: scripts, one style sheet, and the files that are sent as
// they are. A later part of the page (the inspector, the graph, the plots) is a file of its own, loaded when it is opened.
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { brotliCompressSync } from 'node:zlib';
import OpenProps from 'open-props';
import { build } from 'rolldown';
import { writeLicenses } from './licenses.js';

const OUT = 'dist/page';
/** The most that a first visit loads, compressed. */
const MAX_FIRST_LOAD_BYTES = 60 * 1024;

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });

const icons = JSON.parse(readFileSync('node_modules/lucide-static/icon-nodes.json', 'utf8'));

const { output } = await build({
  input: { page: 'page/main.tsx' },
  platform: 'browser',
  tsconfig: 'page/tsconfig.json',
  plugins: [
    {
      // `icon:play` is the list of the shapes of that icon.
      name: 'icons',
      resolveId: (id) => (id.startsWith('icon:') ? id : undefined),
      load(id) {
        if (!id.startsWith('icon:')) return undefined;
        const shapes = icons[id.slice('icon:'.length)];
        if (shapes === undefined) throw new Error(`There is no ${id}.`);
        return `export default ${JSON.stringify(shapes)}`;
      },
    },
  ],
  output: {
    dir: OUT,
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    minify: true,
  },
});

/** Sheets in the order of their names, preceded by the custom properties of Open Props that they use. */
const sheets = readdirSync('page/styles').filter((name) => name.endsWith('.css')).toSorted();
const own = sheets.map((name) => readFileSync(`page/styles/${name}`, 'utf8')).join('\n');
const plots = readFileSync('node_modules/uplot/dist/uPlot.min.css', 'utf8');
writeFileSync(`${OUT}/page.css`, compact(`:root{${tokensIn(own)}}\n${own}\n${plots}`));

copyFileSync('page/icon.svg', `${OUT}/icon.svg`);
copyFileSync('page/index.html', `${OUT}/index.html`);

const first = ['index.html', 'page.css', 'icon.svg', ...filesOf('page.js')];
const bytes = first.reduce((sum, name) => sum + brotliCompressSync(readFileSync(`${OUT}/${name}`)).length, 0);
if (bytes > MAX_FIRST_LOAD_BYTES) throw new Error(`A first visit loads ${bytes} bytes: ${first.join(', ')}`);

const modules = output.flatMap((file) => file.moduleIds ?? []);
writeLicenses('dist/LICENSES.txt', [
  ...modules.flatMap((id) => /^.*\/(node_modules\/(?:@[^/]+\/)?[^/]+)/.exec(id)?.[1] ?? []),
  'node_modules/lucide-static',
  'node_modules/open-props',
]);

/** A file and all that it imports at once. */
function filesOf(fileName, found = new Set()) {
  if (found.has(fileName)) return found;
  found.add(fileName);
  for (const name of output.find((file) => file.fileName === fileName)?.imports ?? []) filesOf(name, found);
  return found;
}

function tokensIn(css) {
  const tokens = new Map();
  const find = (text) => {
    for (const [, name] of text.matchAll(/var\((--[\w-]+)/g)) {
      const value = OpenProps[name];
      if (value === undefined || tokens.has(name)) continue;
      tokens.set(name, value);
      find(value);
    }
  };
  find(css);
  return [...tokens].map(([name, value]) => `${name}:${value}`).join(';');
}

function compact(css) {
  return css
    .replace(/\/\*[^]*?\*\//g, '')
    .replace(/\s+/g, ' ')
    .replace(/ ?([{};,]) ?/g, '$1')
    .replace(/: /g, ':');
}
