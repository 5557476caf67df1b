import type { AwsV4Signer } from 'aws4fetch';
import type { Clock } from '../../lib/clock.ts';
import type { CredentialSource, Credentials } from './credentials.ts';

type SignerModule = { readonly AwsV4Signer: typeof AwsV4Signer };

/** A request before it is signed. */
export type UnsignedRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

type SignedHeaders = {
  readonly headers: Record<string, string>;
  /** Resolves with true when a call that is signed again has other credentials. */
  readonly renew: () => Promise<boolean>;
};

/** Signs requests and links with the credentials of this process. */
export type Signer = Awaited<ReturnType<typeof createSigner>>;

const PACKAGE = 'aws4fetch';

/** Loads the package that signs. Throws one sentence when it is not installed. */
export async function createSigner(options: {
  readonly credentials: CredentialSource;
  readonly region: string;
  readonly clock: Pick<Clock, 'now'>;
}) {
  const { region, clock } = options;
  const { AwsV4Signer: V4Signer } = await loadPackage();
  const cache = new Map<string, ArrayBuffer>();
  /** The difference between this clock and that of the bucket. */
  let offsetMs = 0;
  let current = await options.credentials();

  function signerOf(request: UnsignedRequest, place: { readonly signQuery: boolean }): AwsV4Signer {
    const datetime = new Date(clock.now() + offsetMs).toISOString().replace(/[:-]|\.\d{3}/g, '');
    const { accessKeyId, secretAccessKey, sessionToken } = current;
    return new V4Signer({
      ...request,
      headers: { ...request.headers },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
      service: 's3',
      region,
      datetime,
      cache,
      ...place,
    });
  }

  /**
   * Asks for new credentials, unless another call has done so. `false` when they are those that
   * were refused.
   */
  async function renew(refused: Credentials): Promise<boolean> {
    if (isSame(current, refused)) current = await options.credentials({ renew: true });
    return !isSame(current, refused);
  }

  return {
    /** Returns the headers to send. Call `renew` when the bucket refuses their credentials. */
    async sign(request: UnsignedRequest): Promise<SignedHeaders> {
      const used = await options.credentials();
      current = used;
      const { headers } = await signerOf(request, { signQuery: false }).sign();
      const signed = Object.fromEntries((headers as Headers).entries());
      delete signed['host'];
      return { headers: signed, renew: () => renew(used) };
    },
    /** Returns a link that needs no credentials for `lifetimeS` seconds. */
    async link(url: URL, lifetimeS: number): Promise<string> {
      current = await options.credentials();
      url.searchParams.set('X-Amz-Expires', String(lifetimeS));
      const request = { method: 'GET', url: url.href, headers: {} };
      const signed = await signerOf(request, { signQuery: true }).sign();
      return signed.url.href;
    },
    /** Sets the clock to that of the bucket. */
    setTime(serverMs: number): void {
      offsetMs = serverMs - clock.now();
    },
  };
}

function isSame(one: Credentials, other: Credentials): boolean {
  return one.accessKeyId === other.accessKeyId && one.sessionToken === other.sessionToken;
}

async function loadPackage(): Promise<SignerModule> {
  try {
    return (await import(PACKAGE)) as SignerModule;
  } catch (cause) {
    throw new Error(
      `needs the package ${PACKAGE}, which is not installed (npm install ${PACKAGE})`,
      {
        cause,
      },
    );
  }
}
