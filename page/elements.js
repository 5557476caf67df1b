/**
 * An element with its properties and children. Whatever comes from elsewhere gets in as text only.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} name
 * @param {Partial<HTMLElementTagNameMap[T]>} [properties]
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** @param {string} id */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no #${id}.`);
  return found;
}

/**
 * Changes a text only when it differs, so that nothing is read out twice.
 * @param {HTMLElement} target
 * @param {string} text
 */
export function say(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Brings a list's items into this order and removes all others; items that stay keep the focus.
 * @param {HTMLElement} list
 * @param {HTMLElement[]} items
 */
export function arrange(list, items) {
  for (const child of Array.from(list.children)) if (!items.includes(child)) child.remove();
  items.forEach((item, i) => {
    if (list.children[i] !== item) list.insertBefore(item, list.children[i] ?? null);
  });
}
