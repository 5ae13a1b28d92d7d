// Shows the view that the fragment of the address names. Browsers do not send fragments, so texts appear in no server log.

import { holdText, showDecode } from "./decode.js";
import { problem } from "./elements.js";
import { currentEntry, onChange } from "./history.js";
import { forgetToken, hasToken, onTokenChange } from "./service.js";
import { relative } from "./words.js";

const VIEWS = {
  decode: { title: "Decode", show: showDecode },
  mint: { title: "Mint", show: async (...wanted) => (await import("./mint.js")).showMint(...wanted) },
  formats: { title: "Formats", show: async (...wanted) => (await import("./formats.js")).showFormats(...wanted) },
  numbers: { title: "Numbers", show: async (...wanted) => (await import("./numbers.js")).showNumbers(...wanted) },
};

const main = document.getElementById("main");
const forget = document.getElementById("forget");

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Parses the fragment: `#/ID?format=…` decodes, `#mint/NAME` mints, `#formats/NAME/DAY` shows a format, and `#numbers/NAME/FROM`
// shows a series.
function route({ given, file }) {
  const hash = location.hash.slice(1);
  if (hash.startsWith("/")) {
    const [text, query] = hash.slice(1).split("?");
    const { format, encoding } = Object.fromEntries(new URLSearchParams(query));
    return { view: "decode", text: unescaped(text), format, encoding };
  }
  const [view, name, from] = hash.split("/").map(unescaped);
  if (Object.hasOwn(VIEWS, view)) return { view, name, from };
  return { view: "decode", text: given ?? "", file, isLost: view === "many" && given === undefined };
}

/** Renews texts such as `3 seconds ago`, which become wrong in a view that is kept. */
function renewTimes() {
  for (const ago of document.querySelectorAll("[data-ms]")) ago.textContent = relative(Number(ago.dataset.ms));
  for (const time of document.querySelectorAll("time[title]")) time.title = relative(Date.parse(time.dateTime));
}

let shown = null;

async function show() {
  const entry = currentEntry();
  const wanted = route(entry);
  const { title, show } = VIEWS[wanted.view];
  const isFirst = shown === null;
  const isOther = shown?.view !== wanted.view;
  shown = { view: wanted.view, key: entry.key };
  const text = wanted.text?.trim().split("\n")[0].slice(0, 40).toWellFormed();
  document.title = `${text ? `${text} · ` : ""}${wanted.name ?? title} · idmint`;
  for (const name of Object.keys(VIEWS)) {
    const link = document.getElementById(`to-${name}`);
    if (name === wanted.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  holdText(wanted.view === "decode" ? wanted : null);
  document.getElementById("view").replaceChildren(entry.element);
  // The link that the user followed had the focus, and has disappeared with its view. Move the focus to the new view.
  if (!isFirst && (isOther || document.activeElement === document.body)) main.focus({ preventScroll: true });
  scrollTo(0, 0);
  try {
    if (entry.isNew) await show(entry.element, wanted);
    else renewTimes();
  } catch (error) {
    entry.element.replaceChildren(problem(error));
  }
  if (entry.y && shown.key === entry.key) scrollTo(0, entry.y);
}

onChange(show);
document.addEventListener("visibilitychange", renewTimes);
document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
forget.addEventListener("click", () => {
  forgetToken();
  location.reload();
});
onTokenChange(() => (forget.hidden = !hasToken()));
show();
