import { describe, expect, test } from 'vitest';
import { OWN_SEGMENTS } from '../../src/config/proxy.ts';
import { type Config, parseConfig } from '../../src/config/config.ts';
import { V1_ROUTES } from '../../src/migration/v1-routes.ts';

function configOf(argv: string[], env: NodeJS.ProcessEnv = {}): Config {
  const parsed = parseConfig(argv, env);
  if (parsed.kind !== 'config') throw new Error(parsed.text);
  return parsed.config;
}

function exitOf(argv: string[], env: NodeJS.ProcessEnv = {}): { code: number; text: string } {
  const parsed = parseConfig(argv, env);
  if (parsed.kind !== 'exit') throw new Error('it was accepted');
  return parsed;
}

describe('flags', () => {
  test.each([
    [['--listen', '--local-token', 't'], { listen: '0.0.0.0', localToken: 't' }],
    [['--listen', '--allow-insecure-bind'], { listen: '0.0.0.0' }],
    [['--listen', '::1'], { listen: '::1' }],
    [['--enable-cors-header'], { corsOrigin: '*' }],
    [['--enable-cors-header', 'https://app.example'], { corsOrigin: 'https://app.example' }],
    [['--max-upload-size', '1.5'], { maxUploadBytes: 1572864 }],
    // An hour; the ledger records whole milliseconds.
    [['--retention-days', '0.041667'], { engine: { retentionMs: 3_600_029 } }],
    [['--ledger', 'redis://h:1/2'], { ledger: { kind: 'redis', url: 'redis://h:1/2' } }],
    [['--ledger', 'rediss://u:p%40w@h'], { ledger: { kind: 'redis', url: 'rediss://u:p%40w@h' } }],
    [['--ledger', 'valkey://h:1'], { ledger: { kind: 'redis', url: 'redis://h:1' } }],
    [['--ledger', 'valkeys://h:1'], { ledger: { kind: 'redis', url: 'rediss://h:1' } }],
  ])('%j is understood', (argv, expected) => {
    expect(configOf(argv)).toMatchObject(expected);
  });

  test.each([
    ['HOLDOVER_PORT', '9000', { port: 9000 }],
    ['HOLDOVER_ENABLE_CORS_HEADER', 'https://a.example', { corsOrigin: 'https://a.example' }],
    ['HOLDOVER_LEDGER', 'redis://h', { ledger: { kind: 'redis', url: 'redis://h' } }],
  ])('the environment variable %s is read', (name, value, expected) => {
    expect(configOf([], { [name]: value })).toMatchObject(expected);
  });

  test('hosts that a service may redirect to are read, from either place', () => {
    const upstream = ['--upstream', 'http://h.example'];
    const hosts = [
      { hostname: 'minio.internal', port: '9000' },
      { hostname: '10.0.0.5', port: undefined },
      { hostname: '[fd00::1]', port: '80' },
    ];
    const expected = { upstream: { redirectHosts: hosts } };
    const flag = ['--upstream-redirects', 'MINIO.internal:9000', '10.0.0.5', '[fd00::1]:80'];
    expect(configOf([...upstream, ...flag, '--port', '0'])).toMatchObject(expected);
    const name = 'HOLDOVER_UPSTREAM_REDIRECTS';
    expect(
      configOf(upstream, { [name]: 'minio.internal:9000, 10.0.0.5 [fd00::1]:80' }),
    ).toMatchObject(expected);
    expect(configOf(upstream)).toMatchObject({ upstream: { redirectHosts: [] } });
  });

  test('a flag wins over its environment variable', () => {
    expect(configOf(['--port', '1234'], { HOLDOVER_PORT: '9000' }).port).toBe(1234);
  });

  test.each([
    [['--prot', '1'], /--prot/],
    [['--port', 'abc'], /--port.*abc/],
    [['--port', '65536'], /--port/],
    [['--concurrency', '0'], /--concurrency/],
    [['--log-level', 'loud'], /--log-level.*loud/],
    [['--listen', 'not an address'], /--listen/],
    [['--listen'], /--local-token.*--allow-insecure-bind/],
    [['--listen', '192.168.1.2'], /--local-token/],
    [['--local-token', ' s3cret'], /--local-token.*blanks/],
    [['--local-token', ' '], /--local-token.*blanks/],
    [['--local-token', 's3cret\n'], /--local-token.*blanks/],
    [['--local-token', 's3\u0001cret'], /--local-token.*control/],
    [['--upstream', 'https://user:pw@host.example/x'], /--upstream.*login/],
    [['--upstream', 'https://host.example/x?key=1'], /--upstream.*query/],
    [['--upstream', 'ftp://host.example'], /--upstream/],
    [['--upstream-key', '/nowhere/canary'], /--upstream-key.*HOLDOVER_UPSTREAM_KEY/],
    [['--limits', '7'], /--limits/],
    [['--upstream', 'remote'], /--upstream/],
    [
      ['--upstream', 'http://h.example', '--upstream-redirects', 'http://a/b'],
      /--upstream-redirects/,
    ],
    [['--upstream', 'http://h.example', '--upstream-redirects', '*.a'], /--upstream-redirects/],
    [['--upstream', 'http://h.example', '--upstream-redirects', 'a:99999'], /--upstream-redirects/],
    [['--upstream-redirects', 'a'], /--upstream-redirects.*--upstream URL/],
    [['--data-dir', ''], /--data-dir/],
    [['--enable-cors-header', 'app.example'], /--enable-cors-header.*app\.example/],
    [['--enable-cors-header', 'localhost:3000'], /--enable-cors-header/],
    [['surplus'], /argument/],
  ])('%j is refused in one clear line, exit code 2', (argv, message) => {
    const { code, text } = exitOf(argv);
    expect(code).toBe(2);
    expect(text).toMatch(message);
    expect(text.trim().split('\n')).toHaveLength(1);
  });

  test.each([
    ['postgres://ann:canary@host/db', 'postgres://host/db'],
    ['redis://ann:canary@host/cache', 'redis://host/cache'],
    ['redis://:canary@host:1?password=canary', 'redis://host:1'],
    ['redis://:canary', 'redis://…'],
    ['redis://ann:canary/with/slashes@host', 'redis://…'],
    ['redis://ann:canary@host,other:1', 'redis://host,other:1'],
    ['redis://ann:canary@host:1,other:1', 'redis://…'],
    ['ann:canary@host:1', '…'],
    ['redis:', '…'],
    ['memory', 'memory'],
    ['', ''],
  ])('--ledger %s is refused as %s, without a password', (text, shown) => {
    const { code, text: told } = exitOf(['--ledger', text]);
    expect(code).toBe(2);
    expect(told).toMatch(/^error: option '--ledger' .*\n$/);
    expect(told).toContain(`not '${shown}'`);
    expect(told).not.toContain('canary');
  });

  test.each([
    ['--upstream', 'ann:canary@host', 'host'],
    ['--upstream', 'ftp://ann:canary/with/slash@host/x', 'ftp://host/x'],
    ['--upstream', 'https://ann:canary/with/slash@host', 'https://host'],
    ['--upstream', 'ftp://host/x?key=canary', 'ftp://host/x?…'],
    ['--public-url', 'https://ann:canary@host/comfy', 'https://host/comfy'],
    ['--public-url', 'https://host/comfy?key=canary', 'https://host/comfy?…'],
  ])('%s %s is refused as %s, without a secret', (flag, text, shown) => {
    const { code, text: told } = exitOf([flag, text]);
    expect([code, told]).toEqual([2, expect.stringContaining(`'${shown}'`)]);
    expect(told).not.toContain('canary');
  });

  test('an empty environment value is none', () => {
    const names = ['SUNSET', 'BROWNOUT', 'ENABLE_CORS_HEADER', 'PORT', 'LISTEN', 'DATA_DIR'];
    const env = Object.fromEntries(names.map((name) => [`HOLDOVER_${name}`, '']));
    expect(configOf([], env)).toEqual(configOf([]));
  });

  test.each(['0', 'false', 'no', 'off', ''])(
    'HOLDOVER_ALLOW_INSECURE_BIND=%s does not open the server to the network',
    (value) => {
      const env = { HOLDOVER_LISTEN: '0.0.0.0', HOLDOVER_ALLOW_INSECURE_BIND: value };
      expect(exitOf([], env).text).toMatch(/--allow-insecure-bind/);
    },
  );

  test('a switch in the environment is on or off, nothing else', () => {
    expect(exitOf([], { HOLDOVER_ALLOW_INSECURE_BIND: 'never' })).toMatchObject({
      code: 2,
      text: "error: HOLDOVER_ALLOW_INSECURE_BIND must be 1 or 0, not 'never'\n",
    });
    const env = { HOLDOVER_LISTEN: '0.0.0.0', HOLDOVER_ALLOW_INSECURE_BIND: 'never' };
    expect(configOf(['--allow-insecure-bind'], env).listen).toBe('0.0.0.0');
    expect(exitOf(['--version'], env).code).toBe(0);
  });

  test.each(['1', 'true', 'yes'])('HOLDOVER_ALLOW_INSECURE_BIND=%s does', (value) => {
    const env = { HOLDOVER_LISTEN: '0.0.0.0', HOLDOVER_ALLOW_INSECURE_BIND: value };
    expect(configOf([], env).listen).toBe('0.0.0.0');
  });
});

describe('behind a proxy', () => {
  test.each([
    [[], { publicUrl: undefined, trustedProxies: [], allowedHosts: [] }],
    [
      ['--public-url', 'https://Comfy.example.com:443/comfy/'],
      { publicUrl: { origin: 'https://comfy.example.com', prefix: '/comfy' } },
    ],
    [['--public-url', 'http://h:8080'], { publicUrl: { origin: 'http://h:8080', prefix: '' } }],
    [['--public-url', 'https://h/holdover'], { publicUrl: { prefix: '/holdover' } }],
    [['--public-url', 'https://h/api/comfy'], { publicUrl: { prefix: '/api/comfy' } }],
    [
      ['--trust-proxy', 'loopback', '10.0.0.0/8', '::1', '--trust-proxy', 'uniquelocal'],
      { trustedProxies: ['loopback', '10.0.0.0/8', '::1', 'uniquelocal'] },
    ],
    [
      ['--allowed-hosts', 'A.example', 'b.example:81', '.c.example', '[::2]:82'],
      {
        allowedHosts: [
          { hostname: 'a.example', port: undefined, hasSubdomains: false },
          { hostname: 'b.example', port: '81', hasSubdomains: false },
          { hostname: 'c.example', port: undefined, hasSubdomains: true },
          { hostname: '[::2]', port: '82', hasSubdomains: false },
        ],
      },
    ],
  ])('%j is understood', (argv, proxy) => {
    expect(configOf(argv).proxy).toMatchObject(proxy);
  });

  test('the environment has lists in one text', () => {
    const env = {
      HOLDOVER_PUBLIC_URL: 'https://h/comfy',
      HOLDOVER_TRUST_PROXY: 'loopback, 10.0.0.1',
      HOLDOVER_ALLOWED_HOSTS: 'a.example b.example',
    };
    expect(configOf([], env).proxy).toMatchObject({
      publicUrl: { prefix: '/comfy' },
      trustedProxies: ['loopback', '10.0.0.1'],
      allowedHosts: [{ hostname: 'a.example' }, { hostname: 'b.example' }],
    });
  });

  test.each([
    ['--public-url', 'comfy.example.com'],
    ['--public-url', 'ftp://h'],
    ['--public-url', 'https://user:secret@h'],
    ['--public-url', 'https://h/?a=b'],
    ['--public-url', 'https://h/a//b'],
    ['--public-url', 'https://h/api'],
    ['--public-url', 'https://h/v1/'],
    ['--trust-proxy', 'proxy.example'],
    ['--trust-proxy', '10.0.0.0/33'],
    ['--trust-proxy', '0.0.0.0/0'],
    ['--trust-proxy', '*'],
    ['--allowed-hosts', 'https://h'],
    ['--allowed-hosts', '*'],
    ['--allowed-hosts', '*.example.com'],
    ['--allowed-hosts', 'h/path'],
    ['--allowed-hosts', 'h:99999'],
  ])('%s %s is refused by its name', (flag, value) => {
    const { code, text } = exitOf([flag, value]);
    expect([code, text]).toEqual([2, expect.stringContaining(`'${flag}'`)]);
  });

  // A prefix of that name could not be told from the path itself.
  test('every first segment of a v1 route is known as the server\u2019s own', () => {
    const firsts = Object.keys(V1_ROUTES).map((route) => route.split(/[ /]+/)[1] ?? '');
    expect(firsts.filter((first) => !OWN_SEGMENTS.has(first))).toEqual([]);
  });
});
