// The entries of the browser's history. The back button shows the same elements again, and a reload decodes the same text.

import { h } from "./elements.js";
import { linkOf } from "./service.js";

/** The maximum length of a text in an address, in UTF-16 units. */
const LINK_LEN_MAX = 1500;

/** The maximum length of a text in the state of a history entry, in UTF-16 units. Browsers refuse a state of some megabytes. */
const STATE_LEN_MAX = 1_000_000;

/** The maximum number of views whose elements are kept in memory. */
const KEPT_MAX = 20;

/** The views whose elements are kept, by the key of their history entry. */
const kept = new Map();

let next = null;
let changed = () => {};

/** Calls `show` whenever another history entry is to be shown. */
export function onChange(show) {
  changed = show;
  history.scrollRestoration = "manual";
  // `hashchange` would miss some changes, because all long texts have the same fragment (`#many`).
  addEventListener("popstate", show);
  addEventListener("scrollend", () => history.replaceState({ ...history.state, y: scrollY }, ""));
}

/** Returns the current history entry: its key, the text in its state, and the element of its view, which is empty at first. */
export function currentEntry() {
  if (!history.state?.key) history.replaceState({ ...history.state, key: `${Date.now()} ${Math.random()}` }, "");
  const { key, given, file, y = 0 } = history.state;
  let entry = kept.get(key);
  const isNew = !entry;
  if (isNew) {
    entry = next ?? { given, file };
    entry.element = h("div");
    kept.set(key, entry);
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  }
  next = null;
  return { ...entry, key, y, isNew };
}

/** Goes to the view of a text. A text that is too long for an address is stored in the state of a new history entry. */
export function visit(given, file) {
  const link = linkOf(given);
  if (!file && given.length <= LINK_LEN_MAX && given.isWellFormed()) {
    if (location.hash === link) again();
    else location.hash = link;
    return;
  }
  next = { given, file };
  history.pushState({ given: given.length <= STATE_LEN_MAX ? given : undefined, file }, "", "#many");
  changed();
}

/** Goes to the start page. If it is already shown, shows it again from scratch. */
export function visitStart() {
  if (location.hash.length > 1) location.hash = "";
  else again();
}

function again() {
  kept.delete(history.state?.key);
  changed();
}
