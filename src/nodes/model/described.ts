import type { DescribedNode } from '../node.ts';

/** The place of a class in the original's menu and code. A category alone is one of its core. */
type Place = string | Pick<DescribedNode, 'category' | 'pythonModule' | 'style'>;

/** Describes a class by its name and title, its place, the types of its outputs, and its inputs. */
export function described(
  [name, displayName]: readonly [name: string, title?: string],
  place: Place,
  outputs: readonly string[],
  required: DescribedNode['required'],
): DescribedNode {
  return {
    ...(typeof place === 'string' ? { category: place, pythonModule: 'nodes' } : place),
    name,
    displayName: displayName ?? name,
    required,
    outputs: outputs.map((type) => ({ type })),
  };
}
