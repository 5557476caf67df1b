import type { FormLimits } from '../../../src/http/received-form.ts';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpServer } from '../../../src/http/server.ts';
import { createUploadLimit } from '../../../src/http/upload-limit.ts';
import { createBodyReader } from '../../../src/http/json-body.ts';
import { createPublicAddresses } from '../../../src/http/public-address.ts';
import { createApp } from '../../../src/v1/app.ts';
import { createDialects } from '../../../src/dialects/dialect.ts';
import { type CatalogServices, catalogRoutes } from '../../../src/v1/catalog.ts';
import {
  type FileRouteServices,
  fileRoutes,
  signedViewMiddleware,
} from '../../../src/v1/file-routes.ts';
import { drawPicture } from '../../../src/files/draw-picture.ts';
import { createPictures } from '../../../src/files/pictures.ts';
import { createViewSigner } from '../../../src/auth/signed-view.ts';
import { createUserDataStore } from '../../../src/files/user-data-store.ts';
import { Deprecation } from '../../../src/migration/deprecation.ts';
import { LogPanel } from '../../../src/observability/log-panel.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { fixedDefinitions } from './definitions.ts';
import { type FakeAssets, fakeAssets, fakeFiles, fakeSettings } from './fake-stores.ts';
import { type CallOptions, type Called, call } from '../clients/raw-call.ts';
import { CallCauses } from '../../../src/observability/call-causes.ts';

export const NOW = Date.UTC(2026, 0, 1);

export type AskOptions = CallOptions & {
  /** Whose call it is; `local` when left out. */
  readonly user?: string;
};

/** Files and catalogue behind the real assembly, on a socket, over fakes in memory. */
export type TestApp = {
  readonly url: string;
  readonly assets: FakeAssets;
  readonly files: FileRouteServices['files'];
  /** A clock that only moves when told to. */
  readonly clock: { now: number };
  ask(path: string, options?: AskOptions): Promise<Called>;
  /** Files left in the spool. */
  spooled(): Promise<string[]>;
  close(): Promise<void>;
};

type TestServices = Partial<Omit<FileRouteServices & CatalogServices, 'uploads'>> & {
  readonly uploads?: Partial<FormLimits>;
};

export async function createTestApp({ uploads, ...change }: TestServices = {}): Promise<TestApp> {
  const assets = fakeAssets();
  const dir = await mkdtemp(join(tmpdir(), 'holdover-v1-'));
  const spoolDir = join(dir, 'spool');
  await mkdir(spoolDir);
  const clock = { now: NOW };
  const now = (): number => clock.now;
  const deps: FileRouteServices & CatalogServices = {
    jobs: assets,
    files: fakeFiles(),
    settings: fakeSettings(),
    uploads: {
      spoolDir,
      maxUploadBytes: 1024 * 1024,
      limitUploads: createUploadLimit(),
      ...uploads,
    },
    bodies: createBodyReader({ maxBytes: 1024 * 1024 }),
    view: 'stream',
    links: {
      addresses: createPublicAddresses(),
      signer: createViewSigner({ secret: Buffer.from('test secret'), now }),
    },
    pictures: createPictures(drawPicture),
    catalog: undefined,
    now,
    definitions: fixedDefinitions({}),
    info: { features: {}, version: '1.2.3' },
    logs: new LogPanel({ now, startLine: 'started', sendTo: () => {} }),
    userData: createUserDataStore({ root: join(dir, 'userdata'), quotaBytes: 1024 * 1024 }),
    ...change,
  };
  const app = createApp({
    auth: {
      addresses: deps.links.addresses,
      dialects: createDialects('auto'),
      guard: () => undefined,
      authenticate: async ({ headers }) => ({ user: String(headers['x-user'] ?? 'local') }),
    },
    routes: {
      public: [signedViewMiddleware(deps)],
      v1: [...fileRoutes(deps), ...catalogRoutes(deps)],
    },
    corsOrigin: undefined,
    log: silentLogger(),
    observer: {
      causes: new CallCauses(() => undefined),
      onCaller: () => {},
      onAnswered: () => {},
      middleware: [],
    },
    deprecation: new Deprecation({
      deprecatedAtMs: 0,
      sunsetAtMs: undefined,
      brownouts: [],
      now,
      countCall: () => {},
    }),
    frontend: undefined,
    checkDataDir: () => {},
  });
  const handle = app.callback();
  const server = createHttpServer((incoming, outgoing) => void handle(incoming, outgoing));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    assets,
    files: deps.files,
    clock,
    ask: (path, { user = 'local', ...options } = {}) =>
      call(url, path, { ...options, headers: { 'X-User': user, ...options.headers } }),
    spooled: () => readdir(spoolDir),
    async close() {
      server.closeAllConnections();
      server.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export type Part =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly filename: string; readonly data: Buffer | string };

/** A multipart body with raw UTF-8 names, as v1 clients send them. */
export function multipart(...parts: readonly Part[]): {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
} {
  const boundary = 'x-test-boundary';
  const sections = parts.map((part) => {
    const file = 'filename' in part ? `; filename="${part.filename}"` : '';
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${part.name}"${file}\r\n\r\n`;
    const data = 'filename' in part ? part.data : part.value;
    return Buffer.concat([Buffer.from(head), Buffer.from(data), Buffer.from('\r\n')]);
  });
  const body = Buffer.concat([...sections, Buffer.from(`--${boundary}--\r\n`)]);
  return {
    method: 'POST',
    headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
    body,
  };
}

/** Puts a file straight into the app, as an earlier upload or job would have. */
export async function place(
  app: Pick<TestApp, 'assets' | 'files'>,
  name: string,
  bytes: Buffer | string,
  row: {
    type?: 'input' | 'output' | 'temp';
    user?: string;
    subfolder?: string;
    hash?: string;
  } = {},
): Promise<string> {
  const { type = 'input', user = 'local', subfolder = '', hash = `blake3:${'0'.repeat(64)}` } = row;
  const data = Buffer.from(bytes);
  const asset = app.assets.put(user, data, hash);
  await app.files.put({
    user,
    type,
    subfolder,
    filename: name,
    assetId: asset.id,
    hash,
    sizeBytes: data.length,
    contentType: 'application/octet-stream',
    modifiedAtMs: NOW - 60_000,
  });
  return asset.id;
}
