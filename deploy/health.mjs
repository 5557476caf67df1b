// The image's health check: exit code 0 while the process answers. It reads the same variables.
const { HOLDOVER_PORT: port = '8188', HOLDOVER_TLS_CERTFILE: certificate } = process.env;
// The server asks itself; the certificate names it as others call it.
if (certificate) process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
const url = `${certificate ? 'https' : 'http'}://127.0.0.1:${port}/healthz`;
process.exit(
  await fetch(url, { headers: { 'User-Agent': 'holdover-health' } }).then(
    ({ ok }) => (ok ? 0 : 1),
    () => 1,
  ),
);
