// The view that reads ids: the form, and what one id is.

import { showColumn } from "./column.js";
import { drawing, digitsOf, key } from "./drawing.js";
import { copyButton, facts, h, idText, problem, say, table } from "./elements.js";
import { candidates, linesOf, readColumn } from "./lines.js";
import { numberReadings } from "./numbers.js";
import { isRanged, rangeAround } from "./range.js";
import { addressOf, decode, formats, linkOf } from "./service.js";
import { bitsOf, counted, evidence, grouped, local, meaning, reason, relative, width } from "./words.js";

/** No text that is longer is an id, in bytes; the service reads none. */
const TEXT_LEN_MAX = 8192;

/** What is longer stays out of the field, which would be slow with it, in letters. */
const FIELD_LEN_MAX = 20_000;

/** The longest text that goes into an address. */
const LINK_LEN_MAX = 1500;

/** So many columns can be gone back to. */
const KEPT_MAX = 5;

let view = null;

/** What has no link, by its number in the history: it is kept while the page is open. */
const kept = new Map();

/** Shows the form, and reads the text of the address if there is one. */
export function showDecode(main, { text, format, encoding, isKept }) {
  view ??= makeView();
  if (!main.contains(view.form)) main.replaceChildren(view.form, view.result);
  view.stop();
  view.result.removeAttribute("aria-busy");
  if (text) {
    view.hold(text);
    readOne(view.result, text, { format, encoding }, view.start());
    return;
  }
  const back = isKept && kept.get(history.state?.kept);
  view.hold(back ? back.given : "", back?.name);
  if (back) view.result.replaceChildren(back.into);
  else if (isKept) view.result.replaceChildren(h("p", {}, "What was read here is not kept when the page is loaded anew. Paste it again."));
  else view.result.replaceChildren(welcome());
  if (!back) view.field.focus();
}

function makeView() {
  const field = h("textarea", { id: "text", rows: "2", spellcheck: "false", autocapitalize: "none", autocomplete: "off", "aria-describedby": "text-hint" });
  const note = h("p", { class: "note held", hidden: true });
  const file = h("input", { id: "file", type: "file", class: "unseen", accept: ".csv,.tsv,.txt,.log,text/*" });
  const form = h(
    "form",
    { class: "ask" },
    h("h1", {}, "What is this id?"),
    h("label", { for: "text" }, "An id, a line of a log, or a column of ids"),
    field,
    note,
    h("p", { id: "text-hint", class: "note" }, "Enter reads it, Shift and Enter begins a new line. A file can be dropped anywhere on this page."),
    h("p", { class: "actions" }, h("button", { type: "submit", class: "main-action" }, "Decode"), file, h("label", { for: "file", class: "button" }, "Open a file …"), h("button", { type: "button", class: "quiet", onclick: () => clear() }, "Clear")),
  );
  const result = h("div", { id: "result", class: "result" });
  let large = null;
  let stopping = new AbortController();

  const hold = (text, name) => {
    large = text.length > FIELD_LEN_MAX ? text : null;
    field.value = large === null ? text : "";
    field.hidden = large !== null;
    note.hidden = large === null;
    note.replaceChildren(large === null ? "" : `${name ?? "Pasted"}: ${counted(text.length, "character")}, ${counted(linesOf(text).length, "line")}.`);
    field.rows = large === null ? Math.min(8, Math.max(2, text.split("\n").length)) : 2;
  };
  const clear = () => {
    hold("");
    if (location.hash && location.hash !== "#") location.hash = "";
    else showDecode(document.getElementById("main"), { text: "" });
  };
  const start = () => {
    stopping.abort();
    stopping = new AbortController();
    return stopping.signal;
  };
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
    hold(text);
    read(text);
  });
  file.addEventListener("change", () => {
    if (file.files[0]) open(file.files[0]);
    file.value = "";
  });
  const open = async (from) => {
    const text = textOf(await from.arrayBuffer());
    hold(text, from.name);
    read(text, from.name);
  };
  return { form, field, result, hold, start, open, held: () => large ?? field.value, stop: () => stopping.abort() };
}

addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
addEventListener("drop", (event) => {
  const [file] = event.dataTransfer?.files ?? [];
  if (!file) return;
  event.preventDefault();
  if (view && document.contains(view.form)) view.open(file);
});

/** The text of a file. Spreadsheets save UTF-16 with a byte order mark. */
function textOf(buffer) {
  const [first, second] = new Uint8Array(buffer);
  const encoding = first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8";
  return new TextDecoder(encoding).decode(buffer);
}

function welcome() {
  const example = (text, what) => h("li", {}, h("a", { href: linkOf(text), class: "id" }, text), ` ${what}`);
  return h(
    "section",
    { class: "welcome", "aria-label": "Examples" },
    h("h2", {}, "To try"),
    h("ul", { class: "plain" }, example("1573542478315782144", "a snowflake"), example("1I9ZC1000", "a payment"), example("0190163d-8694-739b-aea5-966c26f8ad90", "a UUID of version 7"), example("006b0111a1eebe0000000000000e", "a SIQ")),
  );
}

/** Reads what was put in: one id, the ids of a line, or a column. */
function read(given, name) {
  const lines = linesOf(given);
  if (!lines.some((line) => line.trim())) {
    view.result.replaceChildren(welcome());
    say("There is nothing to read.");
    return;
  }
  const full = lines.filter((line) => line.trim());
  if (full.length > 1) {
    const { into, signal } = keep(given, name);
    showColumn(into, readColumn(given), signal, name);
    return;
  }
  const text = full[0].trim();
  if (text.length > LINK_LEN_MAX || !text.isWellFormed()) {
    const { into, signal } = keep(given, name);
    readOne(into, text, {}, signal);
  } else if (location.hash === linkOf(text)) {
    readOne(view.result, text, {}, view.start());
  } else {
    location.hash = linkOf(text);
  }
}

/** A place for the answer to what has no link, which one can come back to. */
function keep(given, name) {
  view.stop();
  const into = h("div");
  const number = [...kept.keys()].reduce((most, number) => Math.max(most, number), Date.now()) + 1;
  kept.set(number, { given, name, into });
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  history.pushState({ kept: number }, "", "#many");
  document.title = "Decode · idmint";
  view.result.replaceChildren(into);
  // What goes on in it goes on, wherever one goes meanwhile.
  return { into, signal: new AbortController().signal };
}

async function readOne(into, text, pinned, signal) {
  into.setAttribute("aria-busy", "true");
  try {
    const shown = await reading(text, pinned, signal, into);
    if (!signal.aborted && shown) into.replaceChildren(shown);
  } catch (error) {
    if (!signal.aborted) into.replaceChildren(problem(error));
  } finally {
    if (!signal.aborted) into.removeAttribute("aria-busy");
  }
}

/** What there is to see of one text. */
async function reading(text, pinned, signal, into) {
  const isLong = new TextEncoder().encode(text).length > TEXT_LEN_MAX;
  const words = candidates(text);
  const isLine = isLong || /\s/.test(text);
  if (isLong && words.length < 2) {
    say("No id is as long as this.");
    return h("section", {}, h("h2", {}, "No id is as long as this"), h("p", {}, idText(text)), h("p", {}, `It has ${counted(text.length, "character")}; at most ${grouped(TEXT_LEN_MAX)} bytes are read.`));
  }
  const [known, answers] = await Promise.all([
    formats().catch(() => new Map()),
    isLong ? [] : decode([text], { detail: "full", signal, ...pinned }),
  ]);
  const [answer] = answers;
  if (answer?.matches.length) return oneId(text, answer, known, pinned);
  if (answer?.numbers) return numberReadings(text, answer.numbers);
  if (isLine && words.length) {
    const found = await decode(words, { isLenient: false, signal });
    const ids = found.filter((one) => one.format);
    if (ids.length) {
      showColumn(into, { rows: words.map((word) => ({ line: 1, text: word })), columns: null, isSearched: true }, signal);
      return null;
    }
  }
  if (!answer) {
    say("There is no id in it.");
    return h("section", {}, h("h2", {}, "There is no id in it"), h("p", {}, idText(text)));
  }
  return noId(text, answer, pinned);
}

function noId(text, answer, pinned) {
  say(`No format reads it.${answer.did_you_mean.length ? ` Near to ${answer.did_you_mean.join(", ")}.` : ""}`);
  return h(
    "section",
    { class: "card" },
    h("h2", {}, "No id of a format that is known here"),
    h("p", { class: "given" }, idText(text)),
    text.isWellFormed() ? null : h("p", {}, "It holds half of a character, which was read as \\ufffd."),
    damage(answer),
    near(answer),
    answer.shaped_like?.length ? h("p", {}, `It has the shape of ${answer.shaped_like.join(", ")}, but a letter is wrong, missing or too many, or the settings were others.`) : null,
    answer.unlikely?.length
      ? h("section", {}, h("h3", {}, "Only by chance"), table("Readings with hardly any evidence", ["Format", "Written as", "Time", "Evidence"], answer.unlikely.map((one) => [h("a", { href: linkOf(text, { format: one.format, encoding: one.encoding }) }, one.format), one.encoding, one.time ?? "none", `${one.evidence}, ${one.evidence_bits} bits`])))
      : null,
    rejected(answer, !answer.unlikely?.length),
    pinned.format ? h("p", {}, h("a", { href: linkOf(text) }, "Try all formats")) : null,
  );
}

/** Notes about damage to the text. */
function damage({ notes }) {
  return notes?.length ? h("ul", { class: "plain notice" }, notes.map((note) => h("li", {}, note.detail))) : null;
}

/** Ids that the text is near to. */
function near({ did_you_mean: ids }) {
  if (!ids.length) return null;
  return h("section", { class: "near" }, h("h3", {}, "Not as written"), h("p", {}, "It is near to ", ids.length > 1 ? "these ids:" : "this id:"), h("ul", { class: "plain" }, ids.map((id) => h("li", {}, h("a", { href: linkOf(id) }, idText(id))))));
}

/** Why the other formats do not read it. */
function rejected({ rejected: refusals, matches }, isOpen) {
  if (!refusals.length) return null;
  const reasons = Map.groupBy ? Map.groupBy(refusals, (one) => one.reason) : grouping(refusals);
  const rows = [...reasons].map(([why, ones]) => [`Because ${reason(why)}`, ones.map((one) => one.format).join(", ")]);
  return h("details", { open: isOpen }, h("summary", {}, `Why ${matches.length ? "not" : "none of"} ${counted(refusals.length, matches.length ? "other format" : "format")}`), facts(rows));
}

function grouping(ones) {
  const groups = new Map();
  for (const one of ones) groups.set(one.reason, [...(groups.get(one.reason) ?? []), one]);
  return groups;
}

function oneId(text, answer, known, pinned) {
  const [match, ...others] = answer.matches;
  const format = known.get(match.format);
  say(`${match.format}, ${match.time ? `of ${match.time}, ${relative(Date.parse(match.time))}` : "without a time"}, ${match.evidence} evidence.`);
  const link = pinned.format ? linkOf(text, pinned) : linkOf(text);
  return h(
    "article",
    { class: "card" },
    h(
      "header",
      { class: "reading" },
      h("h2", {}, h("a", { href: `#formats/${encodeURIComponent(match.format)}` }, match.format), h("span", { class: "note" }, ` written as ${match.encoding}`)),
      h("p", { class: "given" }, idText(text), copyButton(text, "this id")),
      answer.as_given === false ? h("p", { class: "notice" }, h("strong", {}, "Not as written. "), "Read as ", idText(match.canonical), copyButton(match.canonical, "the id as it should be written")) : null,
      format ? h("p", { class: "summary" }, format.summary) : null,
    ),
    damage(answer),
    drawing(match.fields),
    legend(match, format),
    h("section", { class: "times" }, h("h3", {}, "When"), times(match)),
    h("section", {}, h("h3", {}, "How sure"), h("p", {}, evidence(match)), answer.ambiguous ? h("p", { class: "notice" }, h("strong", {}, "Another reading is nearly as likely."), " One id does not tell them apart; many do.") : null),
    others.length ? h("section", {}, h("h3", {}, "Other readings"), otherReadings(text, others)) : null,
    answer.numbers ? numberReadings(text, answer.numbers) : null,
    answer.as_given === false ? null : near(answer),
    h("section", {}, h("h3", {}, "The same id written otherwise"), encodings(match)),
    format && match.time !== null && isRanged(format) ? rangeAround(format, match.time) : null,
    rejected(answer, false),
    h("p", { class: "actions share" }, h("a", { href: link }, "Link to this id"), copyButton(() => addressOf(link), "the link to this id"), pinned.format ? h("a", { href: linkOf(text) }, "Try all formats") : null),
  );
}

function legend(match, format) {
  const bits = match.fields.reduce((sum, field) => sum + bitsOf(field), 0);
  const rows = match.fields.map((field, at) => [
    h("span", { class: "field-name" }, key(at), field.name),
    h("span", { class: "id" }, grouped(field.value)),
    meaning(field, match, format),
    h("span", { class: "note" }, width(field), field.width.digits ? h("span", { class: "id" }, ` ${digitsOf(field)}`) : null),
  ]);
  return h("div", { class: "legend" }, table(`Fields, of ${Math.ceil(bits)} bits`, ["Field", "Value", "Meaning", "Width"], rows));
}

function times({ time, time_unix_seconds: seconds }) {
  if (time === null) return h("p", {}, seconds === null ? "It carries no time." : `After the year 9999: ${grouped(seconds)} seconds after 1970 began.`);
  const ms = Date.parse(time);
  return facts([
    ["UTC", h("span", { class: "value" }, h("time", { datetime: time, class: "id" }, time), copyButton(time, "the time in UTC"))],
    ["Here", local(ms)],
    ["From now", relative(ms)],
    ["Unix seconds", h("span", { class: "id" }, seconds)],
  ]);
}

function otherReadings(text, others) {
  const rows = others.map((one) => [h("a", { href: linkOf(text, { format: one.format, encoding: one.encoding }) }, one.format), one.encoding, one.time ?? "none", `${one.evidence}, ${one.evidence_bits} bits`]);
  return table("Other readings", ["Format", "Written as", "Time", "Evidence"], rows);
}

function encodings(match) {
  const rows = Object.entries(match.encodings).map(([name, text]) => [name, h("span", { class: "value" }, idText(text), copyButton(text, `the id as ${name}`)), text === match.canonical ? "canonical" : ""]);
  return table("Encodings", ["Written as", "Text", "Note"], rows);
}
