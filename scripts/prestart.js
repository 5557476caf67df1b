// Before `npm start` and `npm run demo`: builds where the tools for it are installed. Without them (`npm ci
// --omit=dev`) it starts what an earlier build left, or says what to run.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

if (existsSync('node_modules/typescript') && existsSync('node_modules/rolldown')) {
  const { status } = spawnSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
  process.exit(status ?? 1);
}
if (!existsSync('dist/main.js')) {
  console.error('Holdover is not built, and the tools that build it are not installed. Run: npm ci && npm run build');
  process.exit(1);
}
