import type Koa from 'koa';

type Chain = readonly Koa.Middleware[];

/**
 * Routes whose path is a name and no pattern, found at once. The router tries the pattern of each of
 * its two hundred, one after the other, and most calls of most clients are to three of these.
 */
export function createPlainRoutes() {
  const chains = new Map<string, { readonly path: string; readonly chain: Chain }>();
  const serve: Koa.Middleware = (ctx, next) => {
    const route = chains.get(`${ctx.method} ${ctx.path}`);
    if (route === undefined) return next();
    ctx.state.answeredBy = route.path;
    return walk(route.chain, 0);

    function walk(chain: Chain, at: number): unknown {
      const step = chain[at];
      return step ? step(ctx, async () => walk(chain, at + 1)) : next();
    }
  };
  return {
    serve,
    add(path: string, methods: readonly string[], chain: Chain): void {
      if (/[^\w/.-]/.test(path)) return;
      // As with the router, the first of several wins.
      for (const method of methods) {
        const name = `${method} ${path}`;
        if (!chains.has(name)) chains.set(name, { path, chain });
      }
    },
  };
}
