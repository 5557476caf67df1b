// Makes the fixtures of this folder: what a built checkout of an older commit leaves when it is killed.
//   node test/upgrade/make.mjs CHECKOUT    (CHECKOUT has `dist`; redis-server and tar are installed)
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

const checkout = resolve(process.argv[2] ?? '.');
const load = createRequire(join(checkout, 'package.json'));
const { Redis } = load('ioredis');
const sharp = load('sharp');
const MAIN = join(checkout, 'dist/main.js');
const HERE = new URL('./', import.meta.url).pathname;
const EXAMPLE = await sharp({
  create: { width: 30, height: 20, channels: 3, background: { r: 200, g: 100, b: 50 } },
})
  .png()
  .toBuffer();
const ALICE = { 'X-API-Key': 'alice' };
const REDIS_PORT = 16_399;
/** The fixtures are opened years later. */
const KEEP = ['--retention-days', '36500'];

const commit = execFileSync('git', ['-C', checkout, 'rev-parse', '--short=7', 'HEAD'])
  .toString()
  .trim();
const children = [];

try {
  await makeSqlite();
  await makeRedis();
} finally {
  for (const child of children) child.kill('SIGKILL');
}

async function makeSqlite() {
  const dataDir = mkdtempSync(join(tmpdir(), 'upgrade-'));
  const server = await startServer(['--data-dir', dataDir, ...KEEP]);
  const expected = await fill(server.url);
  await kill(server.child);
  save('sqlite', dataDir, expected);
}

async function makeRedis() {
  const dataDir = mkdtempSync(join(tmpdir(), 'upgrade-'));
  const redisDir = mkdtempSync(join(tmpdir(), 'upgrade-redis-'));
  const settings = ['--port', String(REDIS_PORT), '--dir', redisDir, '--appendonly', 'yes'];
  const redis = start('redis-server', [...settings, '--appendfsync', 'always', '--save', '']);
  await delay(500);
  const url = `redis://127.0.0.1:${REDIS_PORT}`;
  const common = ['--ledger', url, '--data-dir', dataDir, ...KEEP];
  const server = await startServer([...common, '--concurrency', '0']);
  const worker = start(process.execPath, [MAIN, 'worker', ...common, '--concurrency', '1']);
  await printed(worker, /waiting for jobs/);
  const expected = await fill(server.url);
  await Promise.all([kill(server.child), kill(worker)]);
  const lines = await commandsOf(url);
  const text = lines.map((line) => `${line}\n`).join('');
  writeFileSync(join(HERE, `${commit}-redis.jsonl.gz`), gzipSync(text, { level: 9 }));
  await kill(redis);
  save('redis', dataDir, expected);
  rmSync(redisDir, { recursive: true });
}

function save(ledger, dataDir, expected) {
  const name = join(HERE, `${commit}-${ledger}`);
  execFileSync('tar', ['-czf', `${name}.tar.gz`, '-C', dataDir, '.']);
  writeFileSync(`${name}.json`, `${JSON.stringify(expected, null, 1)}\n`);
  rmSync(dataDir, { recursive: true });
}

// ---------------------------------------------------------------------------- what is there

/** Fills a server with ended, running and waiting prompts, files and settings; says what it holds. */
async function fill(url) {
  const users = { local: {}, alice: ALICE };
  const uploads = [];
  for (const [user, headers] of Object.entries(users)) {
    uploads.push({ user, ...(await upload(url, headers, `${user}.png`, '')) });
    uploads.push({ user, ...(await upload(url, headers, `${user} 2.png`, 'below/there')) });
  }
  await upload(url, {}, 'broken.png', '', Buffer.from('not a picture'));
  for (const [user, headers] of Object.entries(users)) {
    await send(url, headers, 'POST', '/settings', { 'Comfy.Theme': `of ${user}`, 'a.number': 1.5 });
    await send(url, headers, 'POST', '/settings/one.more', { deep: [1, 'ä'] });
    await send(url, headers, 'POST', `/userdata/${encodeURIComponent('workflows/first.json')}`, {
      of: user,
    });
    await send(url, headers, 'POST', `/userdata/${encodeURIComponent('notes ü.txt')}`, user);
  }

  const ended = [
    await prompt(url, {}, flat('flat', 0x204060), { extra_data: { extra_pnginfo: { a: 1 } } }),
    await prompt(url, {}, flat('flat', 0x604020), { prompt_id: 'named-by-the-client' }),
    await prompt(url, {}, loading('local.png', 'loaded')),
    await prompt(url, {}, loading('broken.png', 'never')),
    await prompt(url, {}, preview()),
    await prompt(url, {}, growing(4, 'grown')),
    await prompt(url, ALICE, loading('below/there/alice 2.png', 'loaded')),
    await prompt(url, ALICE, flat('sub/flat', 0x112233), { front: true }),
  ];
  await untilIdle(url);
  const cancelled = await prompt(url, {}, growing(5000, 'cancelled'));
  await untilRunning(url, cancelled);
  await send(url, {}, 'POST', '/interrupt', {});
  await untilIdle(url);
  ended.push(cancelled);
  const v2Ended = await job(url, {}, flat('from-v2', 0x010203));
  await untilJobEnds(url, v2Ended);

  const running = await prompt(url, {}, growing(600, 'running'), { client_id: 'patient' });
  await untilRunning(url, running);
  const waiting = [
    await prompt(url, {}, flat('later', 0x808080), { number: 7.5, client_id: 'patient' }),
    await prompt(url, {}, loading('below/there/local 2.png', 'loaded')),
    await prompt(url, {}, flat('first', 0x909090), { front: true, prompt_id: 'waits-in-front' }),
    await prompt(url, ALICE, loading('alice.png', 'loaded')),
  ];
  const v2Waiting = await job(url, ALICE, flat('from-v2', 0x040506));
  await delay(300);

  const seen = {};
  for (const [user, headers] of Object.entries(users)) {
    const get = (path) => getJson(url, path, headers);
    const history = await get('/history');
    const outputs = await filesOf(url, headers, history);
    seen[user] = {
      history,
      outputs,
      queue: shown(await get('/queue')),
      settings: await get('/settings'),
      userdata: await get('/userdata?dir=workflows&recurse=true&full_info=true'),
      texts: await textsOf(url, headers, ['workflows/first.json', 'notes ü.txt']),
      inputs: await get('/internal/files/input'),
    };
  }
  for (const each of uploads) {
    const { user, name, subfolder } = each;
    each.sha256 = await sha256(url, users[user], { filename: name, subfolder, type: 'input' });
  }
  return { madeBy: commit, uploads, ended, running, waiting, v2Ended, v2Waiting, users: seen };
}

function shown({ queue_running, queue_pending }) {
  const heads = (rows) => rows.map((row) => row.slice(0, 2));
  return { running: heads(queue_running), pending: heads(queue_pending) };
}

async function filesOf(url, headers, history) {
  const files = [];
  for (const [promptId, { outputs }] of Object.entries(history)) {
    for (const { images = [] } of Object.values(outputs)) {
      for (const image of images)
        files.push({ promptId, image, sha256: await sha256(url, headers, image) });
    }
  }
  return files;
}

async function textsOf(url, headers, paths) {
  const texts = {};
  for (const path of paths) {
    const answer = await fetch(`${url}/userdata/${encodeURIComponent(path)}`, { headers });
    texts[path] = await answer.text();
  }
  return texts;
}

async function sha256(url, headers, image) {
  const answer = await fetch(`${url}/view?${new URLSearchParams(image)}`, { headers });
  if (!answer.ok) throw new Error(`no ${image.filename}: ${answer.status}`);
  return createHash('sha256')
    .update(Buffer.from(await answer.arrayBuffer()))
    .digest('hex');
}

// ---------------------------------------------------------------------------- calls

async function upload(url, headers, name, subfolder, bytes = EXAMPLE) {
  const form = new FormData();
  form.append('image', new Blob([bytes]), name);
  form.append('subfolder', subfolder);
  const answer = await fetch(`${url}/upload/image`, { method: 'POST', body: form, headers });
  if (!answer.ok) throw new Error(`upload ${name}: ${answer.status}`);
  return answer.json();
}

async function send(url, headers, method, path, body) {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok)
    throw new Error(`${method} ${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.text();
}

async function prompt(url, headers, graph, more = {}) {
  const body = JSON.parse(await send(url, headers, 'POST', '/prompt', { prompt: graph, ...more }));
  return { user: headers === ALICE ? 'alice' : 'local', id: body.prompt_id, number: body.number };
}

async function job(url, headers, workflow) {
  const body = JSON.parse(await send(url, headers, 'POST', '/api/v2/jobs', { workflow }));
  return { user: headers === ALICE ? 'alice' : 'local', id: body.id };
}

async function getJson(url, path, headers = {}) {
  const answer = await fetch(`${url}${path}`, { headers });
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status}`);
  return answer.json();
}

async function untilIdle(url) {
  for (;;) {
    const left = await Promise.all([getJson(url, '/queue'), getJson(url, '/queue', ALICE)]);
    const rows = left.flatMap((each) => [...each.queue_running, ...each.queue_pending]);
    if (rows.length === 0) return;
    await delay(50);
  }
}

async function untilRunning(url, { id }) {
  for (;;) {
    const { status } = await getJson(url, `/api/job/${id}/status`);
    if (status === 'executing') break;
    await delay(20);
  }
  await delay(400);
}

async function untilJobEnds(url, { id }) {
  while (!(await getJson(url, `/api/v2/jobs/${id}`)).completed_at) await delay(50);
}

// ---------------------------------------------------------------------------- graphs

function flat(filename_prefix, color) {
  return {
    1: { class_type: 'EmptyImage', inputs: { width: 20, height: 12, batch_size: 1, color } },
    9: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix } },
  };
}

function preview() {
  return { ...flat('', 0x778899), 9: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } } };
}

function loading(image, filename_prefix) {
  return {
    3: { class_type: 'LoadImage', inputs: { image } },
    4: { class_type: 'ImageInvert', inputs: { image: ['3', 0] } },
    9: { class_type: 'SaveImage', inputs: { images: ['4', 0], filename_prefix } },
  };
}

function growing(steps, filename_prefix) {
  const side = steps > 10 ? 128 : 64;
  const inputs = { width: side, height: side, feed: 0.055, kill: 0.062, seed: 7, steps };
  return {
    1: { class_type: 'ReactionDiffusion', inputs },
    9: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix } },
  };
}

// ---------------------------------------------------------------------------- Redis

/** Every key as the commands that make it, one a line. Bytes that are not UTF-8 are `{"b64":…}`. */
async function commandsOf(url) {
  const redis = new Redis(url);
  const lines = [];
  const keys = (await redis.keysBuffer('*')).sort((a, b) => a.compare(b));
  for (const key of keys) {
    for (const command of await rebuilt(redis, key))
      lines.push(JSON.stringify(command.map(textOf)));
    const left = await redis.pttl(key);
    if (left >= 0) lines.push(JSON.stringify(['PEXPIRE', textOf(key), left]));
  }
  redis.disconnect();
  return lines;
}

async function rebuilt(redis, key) {
  switch (await redis.type(key)) {
    case 'string':
      return [['SET', key, await redis.getBuffer(key)]];
    case 'hash':
      return [['HSET', key, ...flatten(await redis.callBuffer('HGETALL', key))]];
    case 'list':
      return [['RPUSH', key, ...(await redis.lrangeBuffer(key, 0, -1))]];
    case 'set':
      return [['SADD', key, ...(await redis.smembersBuffer(key))]];
    case 'zset': {
      const pairs = (await redis.callBuffer('ZRANGE', key, '0', '-1', 'WITHSCORES')).flat();
      const args = [];
      for (let at = 0; at < pairs.length; at += 2) args.push(pairs[at + 1], pairs[at]);
      return [['ZADD', key, ...args]];
    }
    case 'stream': {
      const entries = await redis.callBuffer('XRANGE', key, '-', '+');
      const info = await redis.call('XINFO', 'STREAM', key);
      const last = info[info.indexOf('last-generated-id') + 1];
      if (info[info.indexOf('groups') + 1] !== 0) throw new Error(`${key} has groups`);
      const adds = entries.map(([id, fields]) => ['XADD', key, id, ...fields]);
      if (adds.length === 0) throw new Error(`${key} is an empty stream`);
      return [...adds, ['XSETID', key, last]];
    }
    default:
      throw new Error(`what is ${key}?`);
  }
}

function flatten(answer) {
  return Array.isArray(answer) ? answer : Object.entries(answer).flat();
}

function textOf(part) {
  if (!Buffer.isBuffer(part)) return String(part);
  const text = part.toString('utf8');
  return Buffer.from(text).equals(part) ? text : { b64: part.toString('base64') };
}

// ---------------------------------------------------------------------------- processes

function start(program, args) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: tmpdir() });
  children.push(child);
  child.text = '';
  child.stdout.on('data', (chunk) => (child.text += chunk));
  child.stderr.on('data', () => {});
  return child;
}

async function startServer(args) {
  const child = start(process.execPath, [MAIN, '--port', '0', ...args]);
  const [, url] = await printed(child, /go to: (\S+)/);
  return { child, url };
}

async function printed(child, pattern) {
  for (;;) {
    const found = pattern.exec(child.text);
    if (found) return found;
    if (child.exitCode !== null) throw new Error(`ended: ${child.text}`);
    await delay(20);
  }
}

async function kill(child) {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}
