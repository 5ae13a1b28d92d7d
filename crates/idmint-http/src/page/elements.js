// Creates elements from data. Data always becomes text, and never markup.

import { relative } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Creates an HTML element with these attributes, listeners (such as `onclick`) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Creates an SVG element with these attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/u;

/** Returns a text with its invisible characters escaped, such as `\u202e`, because they can make one text look like another. */
export function visible(text) {
  const parts = [];
  let plain = "";
  for (const letter of text) {
    if (!UNSEEN.test(letter)) {
      plain += letter;
      continue;
    }
    parts.push(plain, h("span", { class: "escaped" }, escaped(letter)));
    plain = "";
  }
  parts.push(plain);
  return parts.filter((part) => part !== "");
}

function escaped(letter) {
  const code = letter.codePointAt(0).toString(16);
  return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
}

/** Returns an element with an id. An id longer than `max` is shortened in the middle. Lines may break after separators. */
export function idText(text, max = 200) {
  const letters = text.length > max ? `${text.slice(0, max / 2).toWellFormed()} … ${text.slice(-max / 2).toWellFormed()}` : text;
  const parts = letters.split(/(?<=[-_.:/,])/);
  return h("bdi", { class: "id", dir: "ltr" }, parts.map((part, at) => [at ? h("wbr") : null, visible(part)]));
}

/** Announces a text to screen readers. */
export function say(text) {
  document.getElementById("status").textContent = text;
}

// Returns a button that copies a text, or the result of a function. `what` names the text for screen readers. If `isNamed`,
// the name is visible.
export function copyButton(text, what, isNamed = false) {
  const button = h("button", { type: "button", class: isNamed ? "copy" : "small copy" }, "Copy", h("span", { class: isNamed ? false : "unseen" }, ` ${what}`));
  button.addEventListener("click", async () => {
    const isCopied = await copy(typeof text === "function" ? text() : text);
    button.firstChild.textContent = isCopied ? "Copied" : "Not copied";
    say(isCopied ? `Copied ${what}` : `${what} could not be copied`);
    setTimeout(() => (button.firstChild.textContent = "Copy"), 2000);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS, browsers offer no clipboard API. The code below copies a selected text instead.
  }
  const area = h("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return isCopied;
}

/** Downloads a text as a file. */
export function save(name, text, type) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// Returns a table. The first cell of each row is the heading of the row. On phones, each cell shows the heading of its column.
// If `isLong`, the table scrolls instead.
export function table(caption, headings, rows, isLong = false) {
  const cell = (content, at) => (at ? h("td", { "data-heading": headings[at] }, content) : h("th", { scope: "row" }, content));
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" },
    h(
      "table",
      { class: isLong && "many" },
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, headings.map((heading) => h("th", { scope: "col" }, heading)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map(cell)))),
    ),
  );
}

/** Returns a list of names and values. Pairs without a value are left out. */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return h("dl", { class: "facts" }, known.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Returns a box that explains an error, and announces the error to screen readers. */
export function problem(error) {
  const box = h("div", { class: "problem" }, h("p", {}, h("strong", {}, error.title ?? "This did not work")));
  if (error.detail ?? error.message) box.append(h("p", {}, visible(error.detail ?? error.message)));
  if (error.retryAfter) box.append(h("p", {}, `The same may work ${relative(Date.now() + error.retryAfter + 999)}.`));
  if (error.page) box.append(h("p", {}, h("a", { href: error.page }, "What this means, and what helps")));
  say(`${error.title ?? "This did not work"}. ${error.detail ?? error.message ?? ""}`);
  return box;
}
