import path from 'node:path';
import { createFolderBlobs } from '../../../src/upstreams/folder/folder-blobs.ts';
import { blobsSuite } from '../blobs.suite.ts';
import { tempDir } from '../embedded/open.ts';

blobsSuite('a folder', async () => createFolderBlobs(path.join(await tempDir(), 'blobs')));
