// Which view is shown: told by what stands behind the # of the address, which no log has.

import { showDecode } from "./decode.js";
import { showFormats } from "./formats.js";
import { showMint } from "./mint.js";
import { showNumbers } from "./numbers.js";
import { forgetToken, hasToken, onTokenChange } from "./service.js";

const VIEWS = {
  decode: { title: "Decode", show: showDecode },
  mint: { title: "Mint", show: showMint },
  formats: { title: "Formats", show: showFormats },
  numbers: { title: "Numbers", show: showNumbers },
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

/** `#/ID?format=…` decodes, `#mint/NAME` mints, `#formats/NAME` shows a format, `#numbers/NAME/FROM` a series. */
function route() {
  const hash = location.hash.slice(1);
  if (hash.startsWith("/")) {
    const [text, query] = hash.slice(1).split("?");
    const { format, encoding } = Object.fromEntries(new URLSearchParams(query));
    return { view: "decode", text: unescaped(text), format, encoding };
  }
  const [view, name, from] = hash.split("/").map(unescaped);
  return VIEWS[view] ? { view, name, from } : { view: "decode", text: "", isKept: view === "many" };
}

let shown = null;

function show() {
  const wanted = route();
  const { title, show } = VIEWS[wanted.view];
  const isOther = shown !== null && (shown.view !== wanted.view || wanted.view === "formats" || wanted.view === "numbers");
  shown = wanted;
  document.title = `${wanted.text ? `${wanted.text.slice(0, 40).toWellFormed()} · ` : ""}${wanted.name ?? title} · idmint`;
  for (const name of Object.keys(VIEWS)) {
    const link = document.getElementById(`to-${name}`);
    if (name === wanted.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(main, wanted);
  if (isOther) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

addEventListener("hashchange", show);
document.getElementById("skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
forget.addEventListener("click", () => {
  forgetToken();
  location.reload();
});
onTokenChange(() => (forget.hidden = !hasToken()));
show();
