// Making elements from data. Text becomes text nodes; nothing here ever reads markup.

/** An element: attributes by name, `on…` as listeners, `class`, then children; null and false are left out. */
export function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child || child === 0).map(asNode));
  return node;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/** A number from the text, for keys that must not change. */
function stamp(data) {
  return JSON.stringify(data);
}

/**
 * Make `parent` show `items` in order, each drawn by `draw(item)` under the name `key(item)`.
 * What has not changed stays the same node: focus, selection, scroll and open details survive.
 */
export function keep(parent, items, key, draw, changed = () => {}) {
  const present = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let after = null;
  for (const item of items) {
    const name = key(item);
    const now = stamp(item);
    let node = present.get(name);
    if (!node || node.stamp !== now) {
      const fresh = draw(item);
      fresh.dataset.key = name;
      fresh.stamp = now;
      if (node) {
        const focused = focusPath(node);
        node.replaceWith(fresh);
        refocus(fresh, focused);
        changed(fresh);
      }
      node = fresh;
    }
    present.delete(name);
    const place = after ? after.nextElementSibling : parent.firstElementChild;
    if (place !== node) parent.insertBefore(node, place);
    after = node;
  }
  for (const node of present.values()) node.remove();
}

function focusPath(node) {
  const focused = document.activeElement;
  return node.contains(focused) ? focused.dataset.focus : undefined;
}

function refocus(node, name) {
  if (name) node.querySelector(`[data-focus="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
}

/** Set text only if it differs. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** POST JSON; what came back, or a sentence in `why` when nothing did. */
export async function post(path, body) {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return await answer.json();
  } catch {
    return { done: false, why: "The demo does not answer. Is it still running?" };
  }
}

let toastTimer = 0;

/** One short sentence at the foot of the page. */
export function toast(text) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => node.classList.remove("shown"), 6000);
}
