/** The environment for npm, which calls its registry: with the certificates that the tests were started with. */
export function npmEnv(): NodeJS.ProcessEnv {
  return { ...process.env, NODE_EXTRA_CA_CERTS: process.env['HOLDOVER_TEST_NPM_CA_CERTS'] };
}
