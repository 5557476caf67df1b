/**
 * Holdover's v2 service in a process of its own, over the tiny node library:
 * engine, routes and sockets are the built ones, callers are told apart by their Bearer key.
 */
import { createServer } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Koa from 'koa';
import { createEmbeddedEngine } from '../../../dist/engine/memory/embedded-engine.js';
import { createFolderBlobs } from '../../../dist/blobs/folder/folder-blobs.js';
import { createV2Routes } from '../../../dist/v2/routes.js';
import { DEFAULT_LIMITS } from '../../../dist/engine/job-engine.js';
import { createBodyReader } from '../../../dist/http/json-body.js';
import { createUploadLimit } from '../../../dist/http/upload-limit.js';
import { createPublicAddresses } from '../../../dist/http/public-address.js';
import { openSqliteLedger } from '../../../dist/ledger/sqlite/sqlite-ledger.js';
import { silentLogger } from '../../../dist/observability/log.js';
import { ALL_NODES } from '../../engine/memory/tiny-nodes.mjs';

const dataDir = await mkdtemp(join(tmpdir(), 'holdover-tiny-'));
const engine = await createEmbeddedEngine({
  ledger: openSqliteLedger({ path: ':memory:' }),
  blobs: createFolderBlobs(join(dataDir, 'blobs')),
  outputFiles: { spoolDir: dataDir },
  library: {
    nodes: ALL_NODES,
    nodesModule: new URL('../../engine/memory/tiny-nodes.mjs', import.meta.url).href,
  },
  log: silentLogger(),
  limits: { ...DEFAULT_LIMITS },
});
engine.start();

const app = new Koa();
app.silent = true;
app.use(
  createV2Routes({
    jobs: engine,
    uploads: {
      spoolDir: join(dataDir, 'spool'),
      maxUploadBytes: 1024 * 1024,
      limitUploads: createUploadLimit(),
    },
    links: { addresses: createPublicAddresses() },
    bodies: createBodyReader({ maxBytes: 1024 * 1024 }),
    log: silentLogger(),
    callers: {
      identify(ctx) {
        const key = /^Bearer (\S+)$/.exec(ctx.get('Authorization'))?.[1];
        return key === undefined ? undefined : { user: key };
      },
    },
  }),
);
const handle = app.callback();
const server = createServer((request, response) => void handle(request, response));
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));

async function stop() {
  server.closeAllConnections();
  server.close();
  await engine.close();
  await rm(dataDir, { recursive: true, force: true });
  process.exit(0);
}

process.once('SIGTERM', () => void stop());
