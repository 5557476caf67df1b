import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { chown, cp, mkdir, readFile, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { type Instruction, type Stage, argumentsOf } from '../processes/dockerfile.ts';

/** The image a Dockerfile would give: its files below a folder, and the command and user it starts with. */
export type Image = {
  readonly root: string;
  readonly workdir: string;
  /** Paths in it are below `root`. */
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  readonly exposes: readonly string[];
  readonly healthCheck: readonly string[];
  readonly entrypoint: readonly string[];
};

type Context = {
  readonly folder: string;
  readonly admits: (path: string) => boolean;
  /** For commands, beside what the stage says. */
  readonly env: NodeJS.ProcessEnv;
  /** A copy of what `npm ci` would install, if there is one. */
  readonly packages?: string;
};

type Lock = {
  readonly packages: {
    readonly [path: string]: { readonly integrity?: string; readonly optional?: boolean };
  };
};

/** The user of this name in the base image. */
const UIDS: Readonly<Record<string, number>> = { node: 1000 };
/** Takes ten times the processor time of a copy. */
const INSTALL = 'npm ci --ignore-scripts';
const run = promisify(execFile);

/** Performs the steps of each stage below a folder of its own; the machine's Node is the base image. */
export async function buildImage(
  stages: readonly Stage[],
  into: string,
  context: Context,
): Promise<Image> {
  const built = new Map<string, Image>();
  let last: Image | undefined;
  for (const stage of stages) {
    if (!stage.base.startsWith('node:')) throw new Error(`there is no ${stage.base} here`);
    last = await buildStage(stage, join(into, stage.name), { context, built });
    built.set(stage.name, last);
  }
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  return last;
}

type Around = { readonly context: Context; readonly built: ReadonlyMap<string, Image> };

async function buildStage(stage: Stage, root: string, around: Around): Promise<Image> {
  await mkdir(root, { recursive: true });
  let image: Image = {
    root,
    workdir: root,
    env: {},
    user: 'root',
    exposes: [],
    healthCheck: [],
    entrypoint: [],
  };
  for (const step of stage.steps) image = { ...image, ...(await perform(step, image, around)) };
  return image;
}

async function perform(step: Instruction, image: Image, around: Around): Promise<Partial<Image>> {
  const { rest } = step;
  switch (step.word) {
    case 'WORKDIR':
      await mkdir(join(image.root, rest), { recursive: true });
      return { workdir: join(image.root, rest) };
    case 'COPY':
      return copy(step, image, around);
    case 'RUN':
      return command(rest, image, around.context);
    case 'ENV':
      return { env: { ...image.env, ...settings(rest, image.root) } };
    case 'USER':
      return { user: rest };
    case 'EXPOSE':
      return { exposes: rest.split(/\s+/) };
    case 'HEALTHCHECK':
      return { healthCheck: argumentsOf({ ...step, rest: rest.replace(/^CMD\s+/, '') }) };
    case 'ENTRYPOINT':
      return { entrypoint: argumentsOf(step) };
    case 'VOLUME':
      await stat(join(image.root, rest));
      return {};
    case 'FROM':
    case 'CMD':
      throw new Error(`${step.word} cannot be performed here`);
  }
}

/** A path that begins at the root would be the machine's own. */
async function command(text: string, image: Image, context: Context): Promise<object> {
  if (/(^|[\s=])\/\w/.test(text)) throw new Error(`this would leave the folder: ${text}`);
  const env = { ...context.env, ...image.env };
  const copied = text === INSTALL ? context.packages : undefined;
  const performed = copied === undefined ? text : `${text} --dry-run`;
  await run('sh', ['-c', performed], { cwd: image.workdir, env, maxBuffer: 16 * 1024 * 1024 });
  if (copied !== undefined) await linkPackages(copied, join(image.workdir, 'node_modules'));
  return {};
}

/** Links, which take no time, but for the one file that npm writes over; copies where the folders are on two disks. */
async function linkPackages(from: string, to: string): Promise<void> {
  const list = '.package-lock.json';
  const links = `cp -al "$0" "$1" && cp --remove-destination "$0/${list}" "$1/${list}"`;
  await run('sh', ['-c', `${links} || { rm -rf "$1"; cp -a "$0" "$1"; }`, from, to]);
}

/** The packages of a project, unless they are others than `npm ci` would install there. */
export async function installedPackages(project: string): Promise<{ readonly packages?: string }> {
  const read = async (file: string): Promise<Lock['packages']> =>
    JSON.parse(await readFile(join(project, file), 'utf8')).packages;
  const wanted = await read('package-lock.json');
  const found = await read('node_modules/.package-lock.json').catch(() => ({}) as Lock['packages']);
  const isAsWanted = Object.entries(wanted).every(
    ([path, { integrity, optional }]) =>
      path === '' || (found[path] ? found[path].integrity === integrity : optional === true),
  );
  const isAll = Object.keys(found).every((path) => path in wanted);
  return isAsWanted && isAll ? { packages: join(project, 'node_modules') } : {};
}

async function copy(step: Instruction, image: Image, around: Around): Promise<object> {
  const words = step.rest.split(/\s+/);
  const target = words.at(-1) ?? '';
  const base = target.startsWith('/') ? image.root : image.workdir;
  const { from, chown: owner } = step.flags;
  for (const source of words.slice(0, -1)) {
    const origin = originOf(source, from, around);
    const isFolder = (await stat(origin)).isDirectory();
    // A folder's contents are copied, not the folder.
    const into = target.endsWith('/') && !isFolder ? join(target, basename(source)) : target;
    const place = join(base, into);
    await mkdir(isFolder ? place : dirname(place), { recursive: true });
    if (from === undefined) await copyAdmitted(origin, place, around.context);
    else await run('cp', ['-R', '-P', '-l', isFolder ? `${origin}/.` : origin, place]);
    await stat(place);
    if (owner) await own(origin, place, UIDS[owner.split(':')[0] ?? ''] ?? 0);
  }
  return {};
}

function originOf(source: string, from: string | undefined, { context, built }: Around): string {
  if (from === undefined) return join(context.folder, source);
  const stage = built.get(from);
  if (stage === undefined) throw new Error(`no stage ${from}`);
  return join(stage.root, source);
}

async function copyAdmitted(origin: string, place: string, context: Context): Promise<void> {
  const filter = (path: string) => mayCopy(path, context);
  await cp(origin, place, { recursive: true, verbatimSymlinks: true, filter });
}

/** Folders are entered; what of them is admitted comes along. */
async function mayCopy(path: string, { folder, admits }: Context): Promise<boolean> {
  return (await stat(path)).isDirectory() || admits(relative(folder, path));
}

/** Gives the copied files to that user, if this process may. */
async function own(origin: string, place: string, uid: number): Promise<void> {
  if (process.getuid?.() !== 0) return;
  for (const name of await readdir(origin)) await chown(join(place, name), uid, uid);
}

function settings(text: string, root: string): Record<string, string> {
  const pairs = text.split(/\s+/).map((pair) => pair.split('=', 2) as [string, string]);
  return Object.fromEntries(
    pairs.map(([name, value]) => [name, value.startsWith('/') ? join(root, value) : value]),
  );
}

/** As whom a process of the image runs here: as its user, where that one can reach Node at all. */
export function asUserOf(image: Image): { readonly uid?: number; readonly gid?: number } {
  const uid = UIDS[image.user];
  const may = process.getuid?.() === 0 && uid !== undefined && isOpenToAll(process.execPath);
  return may ? { uid, gid: uid } : {};
}

function isOpenToAll(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o001) !== 0;
  return isOpen && (dirname(path) === path || isOpenToAll(dirname(path)));
}
