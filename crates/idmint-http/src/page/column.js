// Many ids: a table to sort, to filter and to save.

import { copyButton, facts, h, idText, problem, save, say } from "./elements.js";
import { candidates, csvCell } from "./lines.js";
import { decode, inspect, linkOf } from "./service.js";
import { counted, grouped } from "./words.js";

/** So many texts are asked for at once, so that the page goes on meanwhile. */
const BATCH = 2000;
const BATCH_BYTES = 1 << 20;

/** So many rows are shown at once. */
const PAGE = 100;

/** A longer text is no id, and is not sent, in letters. */
const TEXT_LEN_MAX = 2000;

/** So many rows say which column has the ids. */
const SAMPLE = 20;

const NONE = { format: null, encoding: null, time: null, fields: [], ambiguous: false };

/** Reads a column and shows it. */
export async function showColumn(into, column, signal, name = "ids") {
  into.setAttribute("aria-busy", "true");
  const bar = h("progress", { "aria-label": "Reading", max: "1", value: "0" });
  into.replaceChildren(h("p", { class: "note" }, "Reading … "), bar);
  say("Reading.");
  const told = (share) => (bar.value = share);
  try {
    let at = null;
    if (column.columns) {
      at = column.at ?? (await likeliestColumn(column, signal));
      column.rows = column.table.map((row) => ({ line: row.line, text: (row.cells[at] ?? "").trim() })).filter((row) => row.text);
    }
    const rows = await readRows(column, signal, told);
    if (signal.aborted) return;
    const verdict = await verdictOn(rows, signal);
    const format = column.readAs ?? (AS_COLUMN.has(verdict.certainty) ? verdict.format : null);
    if (format) await readAs(format, rows, signal);
    if (signal.aborted) return;
    const again = (chosen) => showColumn(into, { ...column, at: chosen }, signal, name);
    const readAll = (chosen) => showColumn(into, { ...column, at, readAs: chosen }, signal, name);
    const shown = h("div", { class: "verdict", role: "status" }, verdictView(verdict));
    into.replaceChildren(columnView(rows, column, at, again, name, shown, chooseFormat(verdict, format, rows, readAll)));
  } catch (error) {
    if (!signal.aborted) into.replaceChildren(problem(error));
  } finally {
    if (!signal.aborted) into.removeAttribute("aria-busy");
  }
}

/** The column of which most cells of the first rows are ids. */
async function likeliestColumn({ columns, table }, signal) {
  const sample = table.slice(0, SAMPLE);
  const cells = columns.flatMap((_, at) => sample.map((row) => short(row.cells[at]?.trim() ?? "")));
  const answers = await decode(cells, { signal });
  const counts = columns.map((_, at) => answers.slice(at * sample.length, (at + 1) * sample.length).filter((one) => one.format).length);
  return counts.indexOf(Math.max(...counts));
}

function short(text) {
  return text.length > TEXT_LEN_MAX ? "" : text;
}

/** A row for each line; lines that are no ids, but have some in them, get one for each of those. */
async function readRows({ rows, isSearched }, signal, told) {
  const read = await readAll(rows, !isSearched, signal, (share) => told(share * 0.8));
  if (isSearched) return read.filter((row) => row.format);
  const parts = new Map();
  read.forEach((row, at) => {
    if (row.format || !/[\s=:,"']/.test(row.text)) return;
    const words = candidates(row.text);
    if (words.length) parts.set(at, words.map((text) => ({ line: row.line, text })));
  });
  const inside = await readAll([...parts.values()].flat(), false, signal, (share) => told(0.8 + share * 0.2));
  let next = 0;
  return read.flatMap((row, at) => {
    const count = parts.get(at)?.length ?? 0;
    const ids = inside.slice(next, next + count).filter((one) => one.format);
    next += count;
    return ids.length ? ids : [row];
  });
}

async function readAll(rows, isLenient, signal, told, format) {
  const read = [];
  for (let from = 0; from < rows.length; ) {
    let to = from;
    for (let len = 0; to < rows.length && to - from < BATCH && (len < BATCH_BYTES || to === from); to += 1) len += short(rows[to].text).length * 3 + 3;
    const batch = rows.slice(from, to);
    const answers = await decode(batch.map((row) => short(row.text)), { isLenient, signal, format });
    signal.throwIfAborted();
    batch.forEach((row, at) => read.push(rowOf(row, short(row.text) ? answers[at] : NONE)));
    from = to;
    told(from / rows.length);
    // The page draws and listens before the next.
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return read;
}

const DOUBT = "another reading is nearly as likely";

function rowOf({ line, text }, answer) {
  const of = (kind) => answer.fields.filter((field) => field.kind === kind).map((field) => field.value)[0] ?? null;
  const notes = [];
  if (answer.ambiguous) notes.push(DOUBT);
  if (answer.as_given === false) notes.push(`read as ${answer.canonical}`);
  for (const note of answer.notes ?? []) notes.push(note.detail);
  if (!answer.format) notes.push("no id");
  if (!answer.format && answer.did_you_mean?.length) notes.push(`near to ${answer.did_you_mean[0]}`);
  const label = answer.fields.find((field) => field.kind === "worker")?.label;
  return { line, text, format: answer.format, time: answer.time, worker: of("worker"), label, sequence: of("sequence"), note: notes.join(", ") };
}

const COLUMNS = [
  ["line", "Line"],
  ["text", "Id"],
  ["format", "Format"],
  ["time", "Time (UTC)"],
  ["worker", "Worker"],
  ["sequence", "Sequence"],
  ["note", "Note"],
];

const NUMBERS = new Set(["line", "worker", "sequence"]);

function compare(name) {
  return (one, other) => {
    const [a, b] = [one[name], other[name]];
    if (a === b) return one.line - other.line;
    if (a === null || a === "") return 1;
    if (b === null || b === "") return -1;
    if (NUMBERS.has(name)) return String(a).length - String(b).length || (String(a) < String(b) ? -1 : 1);
    return a < b ? -1 : 1;
  };
}

const WHY = {
  no_format: "no format reads 19 of 20 rows",
  several_formats: "several formats fit the rows equally well",
  mixed_formats: "the rows are ids of several formats",
  no_better_than_chance: "no format of this service fits the rows better than random text",
};

/** The certainties with which rows are read as ids of the format of their column. */
const AS_COLUMN = new Set(["certain", "likely"]);

/** The verdict on all rows together, or why there is none. */
async function verdictOn(rows, signal) {
  try {
    return await inspect(rows.map((row) => short(row.text)), { signal });
  } catch (error) {
    return { format: null, error, candidates: [], notes: [] };
  }
}

/** Reads the rows of other formats as ids of this one, and notes which rows are none. */
async function readAs(format, rows, signal) {
  const others = rows.filter((row) => row.format !== format);
  const read = await readAll(others, true, signal, () => {}, format);
  others.forEach((row, at) => {
    const isOne = read[at].format === format;
    if (isOne) Object.assign(row, read[at]);
    else row.note = [row.note, `not an id of ${format}`].filter(Boolean).join(", ");
  });
  for (const row of rows) row.note = row.note.split(", ").filter((note) => note !== DOUBT || row.format !== format).join(", ");
}

/** Offers to read all rows as ids of one format. */
function chooseFormat(verdict, format, rows, readAll) {
  const names = new Set([...verdict.candidates.map((one) => one.format), ...rows.map((row) => row.format), format].filter(Boolean));
  if (!names.size) return null;
  const options = [...names].sort().map((name) => h("option", { value: name, selected: name === format }, name));
  const select = h("select", { id: "read-as" }, h("option", { value: "", selected: !format }, "each by itself"), options);
  select.addEventListener("change", () => readAll(select.value));
  return h("p", { class: "actions" }, h("label", { for: "read-as" }, "Read all as"), select);
}

function verdictView(told) {
  if (told.error) return h("p", { class: "note" }, `No verdict: ${told.error.detail ?? told.error.message}`);
  const spanOf = ({ from, to }) => (from ? `${from} to ${to}` : null);
  const isMixed = told.why === "mixed_formats";
  const named = ({ format, encoding, ids, ...span }) => [`${isMixed ? `${grouped(ids)} of ` : ""}${format} (${encoding})`, spanOf(span)].filter(Boolean).join(", ");
  const verdict = told.format ? `${told.format} (${told.encoding}), ${told.certainty}` : `unknown: ${WHY[told.why]}`;
  return facts([
    ["Verdict", verdict],
    [isMixed ? "Has" : "May be", told.candidates.map(named).join("; ")],
    ["Span", spanOf(told)],
    ["Worker numbers", told.workers && [...told.workers.numbers, ...(told.workers.count > told.workers.numbers.length ? ["…"] : [])].join(", ")],
    ["Back in time", told.backwards === null ? null : counted(told.backwards, "id")],
    ["Note", told.notes.map((note) => note.detail).join("; ")],
    ["None of it", told.none === null ? null : counted(told.none, "row")],
  ]);
}

function columnView(all, column, at, again, name, verdict, readAs) {
  let [sorted, isDown, page] = ["line", false, 0];
  let shown = all;
  const found = all.filter((row) => row.format);
  const names = [...new Set(found.map((row) => row.format))].sort();
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off", spellcheck: "false" });
  const only = h("select", { id: "only" }, h("option", { value: "" }, "all"), names.map((format) => h("option", { value: format }, format)), h("option", { value: "-" }, "no id"));
  const body = h("tbody");
  const place = h("span", { class: "place" });
  const [before, after] = [h("button", { type: "button" }, "Earlier rows"), h("button", { type: "button" }, "Later rows")];

  const heads = COLUMNS.map(([key, title]) => {
    const button = h("button", { type: "button", class: "sort" }, title, h("span", { class: "arrow", "aria-hidden": "true" }));
    const head = h("th", { scope: "col" }, button);
    button.addEventListener("click", () => {
      [sorted, isDown] = [key, sorted === key && !isDown];
      draw(`Sorted by ${title.toLowerCase()}, ${isDown ? "greatest" : "least"} first.`);
    });
    return [key, head];
  });

  const draw = (told) => {
    const wanted = filter.value.trim().toLowerCase();
    const isWanted = (row) => (only.value === "" || (only.value === "-" ? !row.format : row.format === only.value)) && (!wanted || COLUMNS.some(([key]) => String(row[key] ?? "").toLowerCase().includes(wanted)));
    shown = all.filter(isWanted).sort(compare(sorted));
    if (isDown) shown.reverse();
    page = Math.min(page, Math.max(0, Math.ceil(shown.length / PAGE) - 1));
    if (told) page = 0;
    drawPage();
    for (const [key, head] of heads) {
      const isIt = key === sorted;
      head.setAttribute("aria-sort", isIt ? (isDown ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = isIt ? (isDown ? " ▾" : " ▴") : "";
    }
    if (told) say(told);
  };
  const drawPage = () => {
    const rows = shown.slice(page * PAGE, (page + 1) * PAGE);
    body.replaceChildren(...rows.map(rowView));
    place.textContent = shown.length ? `${grouped(page * PAGE + 1)} to ${grouped(page * PAGE + rows.length)} of ${grouped(shown.length)}` : "no rows";
    before.disabled = page === 0;
    after.disabled = (page + 1) * PAGE >= shown.length;
  };
  const turn = (by) => {
    page += by;
    drawPage();
    say(`Rows ${place.textContent}.`);
  };
  before.addEventListener("click", () => turn(-1));
  after.addEventListener("click", () => turn(1));
  const filtered = () => {
    page = 0;
    draw();
    say(`${counted(shown.length, "row")} of ${grouped(all.length)}.`);
  };
  filter.addEventListener("input", filtered);
  only.addEventListener("change", filtered);

  const csv = () => {
    const lines = shown.map((row) => COLUMNS.map(([key]) => csvCell(row[key], key === "text" && row.format)).join(","));
    save(`${name.replace(/\.[a-z]+$/i, "")}-decoded.csv`, ["line,id,format,time,worker,sequence,note", ...lines, ""].join("\r\n"), "text/csv;charset=utf-8");
    say(`${counted(shown.length, "row")} saved.`);
  };
  draw();
  say(`${counted(found.length, "id")} of ${counted(names.length, "format")} in ${counted(all.length, "row")}.`);
  return h(
    "section",
    { class: "card wide" },
    h("h2", {}, found.length ? counted(found.length, "id") : "No id"),
    verdict,
    summary(all, found, names),
    column.columns ? chooseColumn(column.columns, at, again) : null,
    readAs,
    h(
      "p",
      { class: "actions filters" },
      h("label", { for: "filter" }, "Filter"),
      filter,
      h("label", { for: "only" }, "Format"),
      only,
      h("button", { type: "button", class: "main-action", onclick: csv }, "Save as CSV"),
      copyButton(() => shown.map((row) => row.text).join("\n"), "the ids of these rows"),
    ),
    h("div", { class: "scroll", role: "region", "aria-label": "The ids", tabindex: "0" }, h("table", { class: "many" }, h("caption", { class: "unseen" }, "The ids"), h("thead", {}, h("tr", {}, heads.map(([, head]) => head))), body)),
    h("p", { class: "actions pager" }, before, place, after),
  );
}

function rowView(row) {
  const id = row.format ? h("a", { href: linkOf(row.text) }, idText(row.text, 80)) : idText(row.text, 80);
  return h(
    "tr",
    { class: row.format ? false : "none" },
    h("td", { class: "number" }, grouped(row.line)),
    h("th", { scope: "row" }, id),
    h("td", {}, row.format ?? "—"),
    h("td", { class: "id" }, row.time ?? "—"),
    h("td", { class: "number" }, row.worker === null ? "—" : grouped(row.worker), row.label ? ` ${row.label}` : null),
    h("td", { class: "number" }, row.sequence === null ? "—" : grouped(row.sequence)),
    h("td", { class: "note" }, row.note),
  );
}

/** What all of them have in common. */
function summary(all, found, names) {
  const times = found.map((row) => row.time).filter(Boolean).sort();
  const workers = new Set(found.map((row) => row.worker).filter((worker) => worker !== null));
  const twice = found.length - new Set(found.map((row) => row.text)).size;
  const shares = names.map((name) => `${grouped(found.filter((row) => row.format === name).length)} ${name}`);
  return facts([
    ["Formats", shares.join(", ")],
    ["From", times[0]],
    ["To", times.at(-1)],
    ["Workers", workers.size ? counted(workers.size, "number") : null],
    ["Repeated", twice ? counted(twice, "id") : "none"],
    ["No id", counted(all.length - found.length, "row")],
  ]);
}

function chooseColumn(columns, at, again) {
  const select = h("select", { id: "column" }, columns.map((name, number) => h("option", { value: String(number), selected: number === at }, name)));
  select.addEventListener("change", () => again(Number(select.value)));
  return h("p", { class: "actions" }, h("label", { for: "column" }, "Column"), select);
}
