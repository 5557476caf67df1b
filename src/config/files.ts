import type { Flags } from './flags.ts';
import { InvalidSetting } from './invalid-setting.ts';
import { parseUrl } from './parse-values.ts';

/** Where the bytes of uploads, outputs and files of front ends are. */
export type FilesSource =
  /** In the data directory. */
  | { readonly kind: 'folder' }
  | {
      readonly kind: 'bucket';
      readonly bucket: string;
      /** Before all keys; empty or ending with a slash. */
      readonly prefix: string;
      readonly region: string;
      readonly endpoint: string;
    };

export type BucketSource = Extract<FilesSource, { kind: 'bucket' }>;

/** The flags that say where the bytes of files are. */
export const FILES_FLAGS = ['files', 's3Endpoint'] as const;

type FilesFlags = Pick<Flags, 'files'> & Partial<Pick<Flags, 's3Endpoint'>>;

const BUCKET_URL = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,62})(?:\/(.*))?$/;
const DEFAULT_REGION = 'us-east-1';

/** Reads `folder` or the address of a bucket, and where its server is. */
export function filesSource(flags: FilesFlags, env: NodeJS.ProcessEnv): FilesSource {
  const { files } = flags;
  if (files === 'folder') return { kind: 'folder' };
  const [, bucket, path = ''] = BUCKET_URL.exec(files) ?? [];
  if (bucket === undefined) throw new InvalidSetting(NOT_A_BUCKET);
  const region = env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || DEFAULT_REGION;
  if (!/^[a-z0-9-]{1,64}$/i.test(region))
    throw new InvalidSetting('AWS_REGION must be the name of a region, such as eu-west-1');
  const given = flags.s3Endpoint || env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL'];
  const endpoint = endpointOf(given || `https://s3.${region}.amazonaws.com`);
  return { kind: 'bucket', bucket, prefix: prefixOf(path), region, endpoint };
}

/** The address of a bucket as an operator writes it. */
export function bucketUrl({ bucket, prefix }: BucketSource): string {
  return `s3://${bucket}/${prefix}`.replace(/\/$/, '');
}

/** The address may hold a password where none belongs, so it is not repeated. */
const NOT_A_BUCKET =
  'option \'--files\' must be "folder" or s3://BUCKET/PREFIX; credentials belong into the environment';

function prefixOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '');
  if (parts.some((part) => part === '.' || part === '..' || !/^[\w!.*'()-]+$/.test(part)))
    throw new InvalidSetting(
      "the PREFIX of '--files s3://BUCKET/PREFIX' may hold letters, digits and !-_.*'() between slashes",
    );
  return parts.map((part) => `${part}/`).join('');
}

function endpointOf(text: string): string {
  const url = parseUrl(text);
  if (url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url.origin;
  throw new InvalidSetting(
    "option '--s3-endpoint' must be http://HOST:PORT or https://HOST, and no more",
  );
}
