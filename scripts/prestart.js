// Before `npm start` and `npm run demo`: builds when there is no build, or when a source file is newer than it.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';

const BUILT = 'dist/LICENSES.txt';
const changedAt = (file) => statSync(file).mtimeMs;
const sources = () => ['src', 'page'].flatMap((folder) =>
  readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`));

if (existsSync('node_modules/typescript')) {
  const isBuilt = existsSync(BUILT) && sources().every((file) => changedAt(file) <= changedAt(BUILT));
  if (!isBuilt) process.exit(spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit', shell: true }).status ?? 1);
} else if (!existsSync(BUILT)) {
  console.error('Holdover is not built, and the tools that build it are not installed. Run: npm ci && npm run build');
  process.exit(1);
}
