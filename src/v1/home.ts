import type Koa from 'koa';

/** `GET /`: v1 clients probe it for a 200; a person learns what this is and how to point a client here. */
export function homePage(facts: {
  readonly version: string;
  readonly upstream: string;
  /** A mounted front end has `/` for itself. */
  readonly path?: '/' | '/holdover';
}): Koa.Middleware {
  return async (ctx, next) => {
    if (ctx.path !== (facts.path ?? '/') || (ctx.method !== 'GET' && ctx.method !== 'HEAD'))
      return next();
    ctx.set('Cache-Control', 'no-cache');
    ctx.set('Content-Security-Policy', "default-src 'none'; style-src 'unsafe-inline'");
    ctx.type = 'html';
    ctx.body = render({ ...facts, origin: `${ctx.protocol}://${ctx.host}` });
  };
}

function render(facts: { version: string; upstream: string; origin: string }): string {
  const origin = escapeHtml(facts.origin);
  const socket = origin.replace(/^http/, 'ws');
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Holdover</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem }
pre { padding: .75rem 1rem; border: 1px solid; border-radius: .5rem; overflow-x: auto }
</style>
<h1>Holdover is running</h1>
<p>Version ${escapeHtml(facts.version)}, upstream: ${escapeHtml(facts.upstream)}. It answers the v1
workflow API at this address and runs every call as a v2 job.</p>
<p>Point an existing client here and change nothing else:</p>
<pre>HTTP       ${origin}   (also ${origin}/api)
WebSocket  ${socket}/ws?clientId=…
v2 API     ${origin}/api/v2</pre>
<p>Try it:</p>
<pre>curl ${origin}/system_stats
curl ${origin}/queue</pre>
<p>Health: <a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a></p>
</html>
`;
}

function escapeHtml(text: string): string {
  const entities: { [char: string]: string } = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
  };
  return text.replace(/[&<>"]/g, (char) => entities[char] ?? char);
}
