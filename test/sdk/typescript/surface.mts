// The public surface of @comfyorg/sdk, and which of it a program has used. Options are held complete by
// the type check: the program passes `satisfies Required<…>` of each.
import * as sdk from '@comfyorg/sdk';

type Members = { readonly [name: string]: PropertyDescriptor };
type AnyClass = abstract new (...args: never[]) => object;

const used = new Set<string>();
const exported: readonly [string, unknown][] = [
  ...Object.entries(sdk).filter(([name]) => name !== 'routerErrors'),
  ...Object.entries(sdk.routerErrors).map(([name, value]): [string, unknown] => [
    `routerErrors.${name}`,
    value,
  ]),
];

function isClass(value: unknown): value is AnyClass {
  return typeof value === 'function' && /^class\b/.test(Function.prototype.toString.call(value));
}

function isError(value: unknown): boolean {
  return isClass(value) && value.prototype instanceof Error;
}

/** Those that are not private: TypeScript's private members are not to be told from public ones here. */
const PRIVATE = new Set(['constructor', 'materialize', 'bindOutput']);

function membersOf(kind: AnyClass): readonly [string, PropertyDescriptor][] {
  const members = Object.getOwnPropertyDescriptors(kind.prototype) as Members;
  return Object.entries(members).filter(([name]) => !PRIVATE.has(name));
}

/** `Job.wait`, `Output.toBytes`, `routerErrors.RateLimited` … */
export function surface(): string[] {
  const names = exported.flatMap(([name, value]) => {
    if (isError(value)) return [name];
    if (isClass(value)) return membersOf(value).map(([member]) => `${name}.${member}`);
    return typeof value === 'function' ? [name] : [];
  });
  const { models } = sdk.comfy;
  return [...names, ...Object.keys(models).map((name) => `models.${name}`)].sort();
}

/** Members note their calls from here on; an error class notes that one of it was caught. */
export function watch(): void {
  for (const [name, value] of exported) {
    if (isError(value) || !isClass(value)) continue;
    for (const [member, descriptor] of membersOf(value)) {
      Object.defineProperty(value.prototype, member, noting(`${name}.${member}`, descriptor));
    }
  }
}

function noting(name: string, descriptor: PropertyDescriptor): PropertyDescriptor {
  const change = 'value' in descriptor ? 'value' : 'get';
  return { ...descriptor, [change]: noted(name, descriptor[change]) };
}

/** The same function, which notes that it was called. */
export function noted<Call extends (...args: never[]) => unknown>(name: string, call: Call): Call {
  const noting = function (this: unknown, ...args: never[]): unknown {
    used.add(name);
    return call.apply(this, args);
  };
  return noting as Call;
}

/** The error in which a call ends, as its caller sees it; `none` when it succeeds. */
export async function refusal(
  make: () => unknown,
): Promise<{ name: string; [more: string]: unknown }> {
  try {
    await make();
    return { name: 'none' };
  } catch (error) {
    const known = exported.find(
      ([, value]) => isClass(value) && (error as object).constructor === value,
    );
    if (known) used.add(known[0]);
    const { code, errorType, httpStatus, requestId, details } = error as {
      [name: string]: unknown;
    };
    const { detail = [] } = (details ?? {}) as { detail?: readonly { loc: readonly string[] }[] };
    const places = Array.isArray(detail) ? detail.map(({ loc }) => loc.join('.')) : [];
    const name = known?.[0] ?? (error as Error).name;
    return { name, code: code ?? errorType, httpStatus, places, hasRequestId: Boolean(requestId) };
  }
}

export function usedNames(): string[] {
  return [...used].sort();
}
