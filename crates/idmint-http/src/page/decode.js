// The view that decodes: the form, and the choice between a card for one id and a table for many.

import { h, idText, problem, say } from "./elements.js";
import { visit, visitStart } from "./history.js";
import { decode } from "./service.js";
import { linesOf, split, wordsOf } from "./splitter.js";
import { counted, grouped } from "./words.js";

/** The maximum length of a text that the service decodes as one id, in bytes. */
const TEXT_LEN_MAX = 8192;

/** The maximum length of a text in the field, in UTF-16 units. A longer text would make the field slow, so a note is shown. */
const FIELD_LEN_MAX = 20_000;

/** A text that may be a day or the name of a format. */
const DAY_OR_NAME = /^(\d{4}-\d\d-\d\d([T ]\d\S{4,30})?|[a-z][\w-]{0,40})$/i;

const [form, field, note, file, clear] = ["ask", "text", "held", "file", "clear"].map((id) => document.getElementById(id));

/** The text to decode if it is too long for the field, and otherwise `null`. */
let large = null;

/** Shows the form with a text. In other views than this one, `wanted` is `null` and the form is hidden. */
export function holdText(wanted) {
  form.hidden = !wanted;
  if (!wanted) return;
  const { text = "", file: name } = wanted;
  form.classList.toggle("answered", text !== "");
  large = text.length > FIELD_LEN_MAX ? text : null;
  field.value = large === null ? text : "";
  field.hidden = large !== null;
  field.rows = Math.min(3, Math.max(2, linesOf(field.value).length));
  note.hidden = large === null;
  note.textContent = large === null ? "" : `${name ?? "Pasted"}: ${counted(text.length, "character")}, ${counted(linesOf(text).length, "line")}.`;
}

form.addEventListener("submit", (event) => (event.preventDefault(), read(large ?? field.value)));
field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  read(field.value);
});
field.addEventListener("paste", (event) => {
  const text = event.clipboardData?.getData("text/plain") ?? "";
  const isWhole = field.value === "" || (field.selectionStart === 0 && field.selectionEnd === field.value.length);
  if (!isWhole || !text.trim()) return;
  event.preventDefault();
  read(text);
});
clear.addEventListener("click", () => {
  visitStart();
  field.focus();
});
file.addEventListener("change", () => open(file.files[0]));
addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
addEventListener("drop", (event) => {
  const [dropped] = event.dataTransfer?.files ?? [];
  if (!dropped) return;
  event.preventDefault();
  if (!form.hidden) open(dropped);
});

async function open(from) {
  if (!from) return;
  try {
    read(textOf(await from.arrayBuffer()), from.name);
  } catch (error) {
    // The file is a folder, has disappeared, or is larger than the longest string.
    document.getElementById("view").replaceChildren(problem({ title: "The file cannot be read", detail: error.message }));
  } finally {
    file.value = "";
  }
}

/** Decodes the bytes of a file as UTF-8, or as UTF-16 if they begin with its byte order mark, as files of spreadsheets do. */
function textOf(buffer) {
  const [first, second] = new Uint8Array(buffer);
  const encoding = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding).decode(buffer);
}

function read(given, name) {
  const text = given.trimEnd();
  if (text) {
    // Tabs at the end are empty cells of a table.
    visit(linesOf(text.trim()).length > 1 ? text + /^\t*/.exec(given.slice(text.length)) : text.trim(), name);
    return;
  }
  visitStart();
  say("There is nothing to read.");
}

/** Shows the readings of a text, or the start page if there is no text. */
export async function showDecode(into, { text, format, encoding, file: name, isLost }) {
  if (!text) {
    field.focus();
    const { welcome } = await import("./welcome.js");
    into.replaceChildren(isLost ? h("p", {}, "This text was too long to keep when the page was loaded anew. Paste it again.") : welcome());
    return;
  }
  into.setAttribute("aria-busy", "true");
  try {
    await readInto(into, text, { format, encoding }, name);
  } catch (error) {
    into.replaceChildren(problem(error));
  } finally {
    into.removeAttribute("aria-busy");
  }
}

async function readInto(into, text, pinned, name) {
  const { rows, table } = split(text);
  if (rows.length > 1) {
    await showMany(into, { rows, table, name });
    return;
  }
  const isLong = new TextEncoder().encode(text).length > TEXT_LEN_MAX;
  const [answer] = isLong ? [] : await decode([text], { detail: "full", ...pinned });
  const isRead = answer?.matches.length || answer?.numbers;
  if (answer && !isRead && !pinned.format && DAY_OR_NAME.test(text)) {
    const { dayCard } = await import("./day.js");
    const card = await dayCard(text);
    if (card) {
      into.replaceChildren(card);
      return;
    }
  }
  const words = isRead || pinned.format ? [] : wordsOf(text).filter((word) => word !== text);
  if (words.length && (await showMany(into, { rows: words.map((word) => ({ line: 1, text: word })), areWords: true, name }))) return;
  if (answer) {
    await showOne(into, text, answer, pinned);
    return;
  }
  const why = words.length < 2 ? "No id is as long as this" : "There is no id in it";
  say(`${why}.`);
  into.replaceChildren(h("section", { class: "card" }, h("h2", {}, why), h("p", {}, idText(text)), h("p", {}, `It has ${counted(text.length, "character")}. An id has at most ${grouped(TEXT_LEN_MAX)} bytes.`)));
}

// Shows a table of many ids. If there is only one id, and no other column has ids, shows the card of this id.
// Returns `false`, and shows nothing, if none of the words is an id.
async function showMany(into, column) {
  const { readColumn, showColumn } = await import("./column.js");
  const found = await readColumn(into, column);
  const ids = new Set(found.rows.filter((row) => row.format).map((row) => row.text));
  if (column.areWords && !ids.size) return false;
  if (ids.size !== 1 || found.isOnly === false) {
    showColumn(into, found);
    return true;
  }
  const [id] = ids;
  const [answer] = await decode([id], { detail: "full" });
  const showAll = () => {
    showColumn(into, found);
    into.querySelector(".scroll").focus();
  };
  const all = h("button", { type: "button", class: "small", onclick: showAll }, "Show as a table");
  const where = column.areWords ? "this text" : found.at !== null ? "its column" : counted(column.rows.length, "row");
  await showOne(into, id, answer, {}, h("p", { class: "note" }, `The only id in ${where}. `, all));
  return true;
}

async function showOne(into, ...reading) {
  const { cardOf } = await import("./card.js");
  into.replaceChildren(await cardOf(...reading));
}
