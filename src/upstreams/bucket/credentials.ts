/** The keys that sign a request to a bucket. Never logged. */
export type Credentials = {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
};

/** Returns the current credentials. Set `renew` after the bucket has refused the former ones. */
export type CredentialSource = (options?: { readonly renew?: boolean }) => Promise<Credentials>;

type SdkCredentials = Credentials & { readonly expiration?: Date };
type SdkProviders = {
  readonly fromNodeProviderChain: () => (options?: {
    readonly forceRefresh?: boolean;
  }) => Promise<SdkCredentials>;
};

const SDK_PACKAGE: string = '@aws-sdk/credential-providers';

/**
 * Opens credentials as every S3 client does: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and
 * `AWS_SESSION_TOKEN`, else profiles and roles through the package of the AWS SDK, if it is
 * installed. Throws one sentence when there are none.
 */
export async function openCredentials(env: NodeJS.ProcessEnv): Promise<CredentialSource> {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (accessKeyId && secretAccessKey) {
    const sessionToken = env['AWS_SESSION_TOKEN'] || undefined;
    return async () => ({ accessKeyId, secretAccessKey, sessionToken });
  }
  if (accessKeyId || secretAccessKey)
    throw new Error('one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set, and not the other');
  const { fromNodeProviderChain } = await loadSdkProviders();
  const provide = fromNodeProviderChain();
  return async ({ renew = false } = {}) => provide({ forceRefresh: renew });
}

async function loadSdkProviders(): Promise<SdkProviders> {
  try {
    return (await import(SDK_PACKAGE)) as SdkProviders;
  } catch (cause) {
    throw new Error(
      'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; profiles and roles need the package ' +
        `${SDK_PACKAGE}, which is not installed (npm install ${SDK_PACKAGE})`,
      { cause },
    );
  }
}
