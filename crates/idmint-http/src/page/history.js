// The entries of the browser's history. Back shows the same elements again, and a reload reads the same text.

import { h } from "./elements.js";
import { linkOf } from "./service.js";

/** The longest text that goes into an address, in letters. */
const LINK_LEN_MAX = 1500;

/** The longest text that goes into the state of an entry, in letters. Browsers refuse some megabytes. */
const STATE_LEN_MAX = 1_000_000;

/** The number of views that are kept. */
const KEPT_MAX = 20;

/** The views that were shown, by the key of their entry. */
const kept = new Map();

let next = null;
let changed = () => {};

/** Calls `show` whenever the shown entry changes. */
export function onChange(show) {
  changed = show;
  history.scrollRestoration = "manual";
  // Two long texts have the same fragment, so `hashchange` does not see every change.
  addEventListener("popstate", show);
  addEventListener("scrollend", () => history.replaceState({ ...history.state, y: scrollY }, ""));
}

/** The entry that is shown now: its key, the text in its state, and the element of its view, which is empty at first. */
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

/** Goes to the view of a text. A text that is too long for an address goes into the state of a new entry. */
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

/** Goes to the start, and shows it anew if it is shown already. */
export function visitStart() {
  if (location.hash.length > 1) location.hash = "";
  else again();
}

function again() {
  kept.delete(history.state?.key);
  changed();
}
