// The view of many ids: the verdict on all of them, and a table to sort, filter, copy and save.

import { copyButton, facts, h, idText, problem, save, say } from "./elements.js";
import { decode, decodeColumn, linkOf } from "./service.js";
import { wordsOf } from "./splitter.js";
import { counted, damageOf, grouped } from "./words.js";

/** The number of rows on one page of the table. */
const PAGE = 100;

/** The maximum length of a row, in UTF-16 units. A longer row is not an id, and an empty text is sent instead. */
const TEXT_LEN_MAX = 2000;

/** The number of rows from which `surveyOf` finds the column with the ids. */
const SAMPLE = 20;

// Decodes the rows of a column. In a table, takes the column with the most different ids unless `column.at` names one.
// Returns `column` with the decoded rows and the verdict.
export async function readColumn(into, column) {
  into.replaceChildren(h("p", { class: "note" }, "Reading …"), h("progress", { "aria-label": "Reading" }));
  say("Reading.");
  const { areWords } = column;
  if (column.table && column.at === undefined) column = { ...column, ...(await surveyOf(column.table)) };
  const { table, at = null } = column;
  let given = column.rows;
  if (at !== null) given = table.rows.map(({ line, cells }) => ({ line, text: (cells[at] ?? "").trim() })).filter((row) => row.text);
  if (areWords) given = await idsAmong(given, column);
  if (areWords && !given.length) return { ...column, rows: [] };
  let found = await readRows(given, column);
  const inside = areWords ? new Map() : await idsInside(found.rows, column);
  if (inside.size) found = await readRows(given.flatMap((row, number) => inside.get(number) ?? [row]), column);
  return { ...column, ...found, given: column.rows, at };
}

// Decodes the first rows of a table. Returns the index of the column with the most different ids, or `null` if no cell is an id.
// If the heading is an id of the same format as a cell below it, the heading becomes a row.
async function surveyOf(table) {
  const { columns, head, rows } = table;
  const sample = [head ?? { cells: [] }, ...rows.slice(0, SAMPLE)];
  const texts = columns.map(({ at }) => sample.map((row) => short(row.cells[at]?.trim() ?? "")));
  const answers = await decode(texts.flat());
  const formats = texts.map((_, number) => answers.slice(number * sample.length, (number + 1) * sample.length).map((one) => one.format));
  if (formats.some(([first, ...others]) => first && others.includes(first))) return surveyOf({ columns: columns.map(({ at }) => ({ at, name: `column ${at + 1}` })), rows: [head, ...rows] });
  const counts = formats.map((some, number) => new Set(texts[number].filter((_, row) => row && some[row])).size);
  const most = Math.max(...counts);
  return { table, at: most ? columns[counts.indexOf(most)].at : null, isOnly: counts.filter(Boolean).length < 2 };
}

function short(text) {
  return text.length > TEXT_LEN_MAX ? "" : text;
}

/** The maximum number of words in one request. Their answer is then far below the limit of the service. */
const WORDS_MAX = 20_000;

/** Returns the words that are ids exactly as written. */
async function idsAmong(words, { readAs }) {
  const answers = [];
  for (let at = 0; at < words.length; at += WORDS_MAX) {
    const texts = words.slice(at, at + WORDS_MAX).map((word) => word.text);
    for (const one of await decode(texts, { isLenient: false, format: readAs })) answers.push(one.format);
  }
  return words.filter((_, at) => answers[at]);
}

/** Returns the ids inside rows that are not ids themselves, such as log lines. The key is the index of the row. */
async function idsInside(rows, column) {
  const words = rows.flatMap(({ format, line, text }, at) => (format ? [] : wordsOf(text).flatMap((word) => (word === text ? [] : [{ at, line, text: word }]))));
  const found = new Map();
  for (const word of await idsAmong(words, column)) {
    if (!found.has(word.at)) found.set(word.at, []);
    found.get(word.at).push(word);
  }
  return found;
}

async function readRows(given, { readAs }) {
  const { verdict, rows } = await decodeColumn(given.map((row) => short(row.text)), readAs);
  return { verdict, rows: marked(rows.map((answer, at) => rowOf(given[at], answer, verdict.format, readAs)), verdict.format) };
}

// Returns a row of the table. If the format of the column is known, the row is read as an id of this format.
// `isOther` marks an id of another format. `pinned` is the format if the card would otherwise read the id in another format.
function rowOf({ line, text }, answer, format, readAs) {
  const read = answer.read_as ?? answer;
  const isId = read.format !== null;
  const isOther = isId && answer.read_as === null;
  const of = (kind) => read.fields.find((field) => field.kind === kind);
  const problems = (answer.notes ?? []).map((note) => note.detail);
  if (answer.as_given === false && read === answer && isId) problems.push(`read as ${answer.canonical}`);
  if (!isId || isOther) problems.push(format ? `not an id of ${format}` : "no id");
  if (!isId && answer.did_you_mean?.length) problems.push(`near to ${answer.did_you_mean[0]}`);
  const isDoubtful = answer.ambiguous && (isOther || !format);
  const [worker, sequence] = [of("worker"), of("sequence")];
  const pinned = readAs ?? answer.read_as?.format;
  return { line, text, pinned, key: isId ? `${read.format} ${read.canonical ?? text}` : text, isId, isOther, isDoubtful, problems, format: read.format, time: read.time, worker: worker?.value ?? null, label: worker?.label, sequence: sequence?.value ?? null };
}

/** Marks rows that repeat an earlier id or text, and rows whose time is before that of the previous id. A row can be both. */
function marked(rows, format) {
  const lines = new Map();
  let before = null;
  for (const row of rows) {
    row.repeats = lines.get(row.key);
    if (row.repeats) row.problems.push(`repeats line ${row.repeats}`);
    else lines.set(row.key, row.line);
    if (format && row.time && !row.isOther) {
      // Without the Z, instants of one format sort as texts.
      const time = row.time.slice(0, -1);
      if (before && time < before.time) {
        row.below = before.line;
        row.problems.push(`earlier than line ${before.line}`);
      }
      before = { time, line: row.line };
    }
    row.note = [...row.problems, ...(row.isDoubtful ? ["another reading or a random text is about as likely"] : [])].join(", ");
  }
  return rows;
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

/** Compares rows by one of the columns. Rows without a value come last in both directions. */
function compare(name, isDown) {
  return (one, other) => {
    let [a, b] = [one[name] ?? "", other[name] ?? ""];
    if (a === b) return one.line - other.line;
    if (a === "" || b === "") return a === "" ? 1 : -1;
    // Without the Z, instants sort as texts.
    if (name === "time") [a, b] = [a.slice(0, -1), b.slice(0, -1)];
    const isLess = NUMBERS.has(name) ? (String(a).length - String(b).length || (String(a) < String(b) ? -1 : 1)) < 0 : a < b;
    return isLess === isDown ? 1 : -1;
  };
}

const CERTAINTIES = { certain: "certain", likely: "likely", named: "as you chose" };

const WHY = {
  no_format: "no format reads 19 of 20 rows in one encoding",
  mixed_formats: "the ids of one format are written in several ways",
  several_formats: "several formats fit the rows equally well",
  no_better_than_chance: "no format of this service fits the rows better than random text",
};

/** The maximum number of lines, or of formats, that a list shows. */
const LISTED_MAX = 5;

/** For fewer rows than this, the heading names the lines of each format. Otherwise it names the number of rows. */
const FEW = 10;

/** Returns the formats with their rows, where each row was read independently. The most frequent format comes first. */
function byFormat(rows) {
  const groups = new Map();
  for (const row of rows) {
    if (!row.isId) continue;
    if (!groups.has(row.format)) groups.set(row.format, []);
    groups.get(row.format).push(row);
  }
  return [...groups].sort(([, one], [, other]) => other.length - one.length);
}

// Returns `true` if the rows are ids of several formats. If the service found no format for the column, more than a tenth of
// the rows must be ids without another likely reading.
function areMixed({ verdict: { why }, rows }, groups) {
  const clear = rows.filter((row) => row.isId && !row.isDoubtful);
  return groups.length > 1 && (why === "mixed_formats" || (why === "no_format" && clear.length * 10 > rows.length));
}

/** Returns the lines of some rows: `lines 3, 4, 9 …`. */
function linesOf(rows) {
  const lines = [...new Set(rows.map((row) => row.line))];
  return `line${lines.length > 1 ? "s" : ""} ${lines.slice(0, LISTED_MAX).join(", ")}${lines.length > LISTED_MAX ? " …" : ""}`;
}

/** Returns the name of a format, with `probably` if every row has another likely reading. */
function named([format, rows]) {
  return `${rows.every((row) => row.isDoubtful) ? "probably " : ""}${format}`;
}

/** Returns the heading, such as `2 ids of 2 formats: payment (line 1), ulid (line 2)`. */
function titleOf({ rows }, groups, isMixed) {
  const ids = rows.filter((row) => row.isId).length;
  if (!isMixed) return ids ? counted(ids, "id") : "No id";
  const isOneLine = rows.every((row) => row.line === rows[0].line);
  const where = (some) => (rows.length >= FEW ? ` (${grouped(some.length)})` : isOneLine ? "" : ` (${linesOf(some)})`);
  return `${counted(ids, "id")} of ${groups.length} formats: ${groups.slice(0, LISTED_MAX).map((group) => named(group) + where(group[1])).join(", ")}${groups.length > LISTED_MAX ? " …" : ""}`;
}

/** Returns the list of facts about all rows: their format, time span, worker numbers and duplicates. */
function factsOf({ verdict, rows, readAs }, groups, isMixed) {
  const { format, candidates, workers } = verdict;
  const span = ({ from, to }) => (from ? [h("time", { class: "id" }, from), " to ", h("time", { class: "id" }, to)] : null);
  const candidate = (one) => h("li", {}, `${one.format} (${one.encoding})`, one.from ? [", ", span(one)] : null);
  const listed = (some) => h("ul", { class: "plain" }, some.map((group) => h("li", {}, `${named(group)}: ${counted(group[1].length, "row")}, ${linesOf(group[1])}`)));
  const told = (some, what) => (some.length ? `${counted(some.length, "row")}: ${some.slice(0, 3).map(what).join(", ")}${some.length > 3 ? " …" : ""}` : "none");
  const others = byFormat(rows.filter((row) => row.isOther));
  const none = rows.filter((row) => !row.isId);
  const numbers = workers && [...workers.numbers, ...(workers.count > workers.numbers.length ? ["…"] : [])].join(", ");
  return facts([
    isMixed ? ["Formats", listed(groups)] : ["Format", h("strong", {}, format ? `${format} (${verdict.encoding}), ${CERTAINTIES[verdict.certainty]}` : `unknown: ${WHY[verdict.why]}`)],
    ["May be", !isMixed && candidates.length ? h("ul", { class: "plain" }, candidates.map(candidate)) : null],
    ["Other formats", !isMixed && others.length ? listed(others) : null],
    ["Row by row", isMixed || format || candidates.length ? null : groups.map(([name, some]) => `${grouped(some.length)} ${name}`).join(", ")],
    ["Rows", grouped(rows.length)],
    ["Span", span(verdict)],
    ["Worker numbers", numbers],
    ["Duplicates", told(rows.filter((row) => row.repeats), (row) => `line ${row.line} repeats line ${row.repeats}`)],
    ["Out of order", verdict.backwards === null ? null : told(rows.filter((row) => row.below), (row) => `line ${row.line} is earlier than line ${row.below}`)],
    [readAs ? `Not ids of ${readAs}` : "No ids", none.length ? `${counted(none.length, "row")}: ${linesOf(none)}` : "none"],
  ]);
}

/** Shows a column that `readColumn` has read. */
export function showColumn(into, column) {
  const { rows: all, verdict, table, at, readAs, name = "ids" } = column;
  const again = async (change) => {
    into.setAttribute("aria-busy", "true");
    try {
      showColumn(into, await readColumn(into, { ...column, rows: column.given, ...change }));
    } catch (error) {
      into.replaceChildren(problem(error));
    } finally {
      into.removeAttribute("aria-busy");
    }
  };
  let [sorted, isDown, page] = ["line", false, 0];
  let shown = all;
  const groups = byFormat(all);
  const isMixed = areMixed(column, groups);
  const title = titleOf(column, groups, isMixed);
  const names = [...new Set(all.map((row) => row.format).filter(Boolean))].sort();
  const readable = [...new Set([...verdict.candidates.map((one) => one.format), ...names, ...(verdict.format ? [verdict.format] : [])])].sort();
  const filter = h("input", { id: "filter", type: "search", autocomplete: "off", spellcheck: "false" });
  const only = h("select", { id: "only" }, h("option", { value: "" }, "all rows"), names.map((format) => h("option", { value: format }, format)), h("option", { value: "-" }, "rows that are no ids"), h("option", { value: "!" }, "rows with problems"));
  const isShown = (row) => only.value === "" || (only.value === "-" ? !row.isId : only.value === "!" ? row.problems.length : row.format === only.value);
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
    const isWanted = (row) => isShown(row) && (!wanted || COLUMNS.some(([key]) => String(row[key] ?? "").toLowerCase().includes(wanted)));
    shown = all.filter(isWanted).sort(compare(sorted, isDown));
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
    if (before.disabled) after.focus();
    if (after.disabled) before.focus();
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

  const titles = ["line", "id", "format", "time", "worker", "sequence", "note"];
  const written = (cell) => [titles, ...shown.map((row) => COLUMNS.map(([key]) => cell(row[key], key === "text" && row.isId)))];
  const csv = () => {
    save(`${name.replace(/\.[a-z]+$/i, "")}-decoded.csv`, `${written(csvCell).map((cells) => cells.join(",")).join("\r\n")}\r\n`, "text/csv;charset=utf-8");
    say(`${counted(shown.length, "row")} saved.`);
  };
  const tsv = () => written((...cell) => cellText(...cell).replace(/[\t\r\n]+/g, " ")).map((cells) => cells.join("\t")).join("\n");
  draw();
  say(`${title}. ${counted(all.length, "row")}.`);
  into.replaceChildren(
    h(
      "section",
      { class: "card wide" },
      h("h2", {}, title),
      h("div", { class: "verdict" }, factsOf(column, groups, isMixed)),
      verdict.notes.length ? h("ul", { class: "plain notice" }, verdict.notes.map((note) => h("li", {}, damageOf(note)))) : null,
      h(
        "p",
        { class: "actions filters" },
        table && at !== null ? choice("column", "Column", table.columns.map((one) => [one.at, one.name, one.at === at]), (value) => again({ at: Number(value), readAs: undefined })) : null,
        readable.length ? choice("read-as", "Read all as", [["", "what fits best", !readAs], ...readable.map((format) => [format, format, format === readAs])], (value) => again({ at, readAs: value || undefined })) : null,
        h("span", { class: "value" }, h("label", { for: "filter" }, "Filter"), filter),
        h("span", { class: "value" }, h("label", { for: "only" }, "Show"), only),
      ),
      h("p", { class: "actions" }, h("button", { type: "button", class: "main-action", onclick: csv }, "Save as CSV"), copyButton(tsv, "table", true), copyButton(() => shown.map((row) => row.text).join("\n"), "ids", true)),
      h("div", { class: "scroll", role: "region", "aria-label": "The ids", tabindex: "0" }, h("table", { class: "many" }, h("caption", { class: "unseen" }, "The ids"), h("thead", {}, h("tr", {}, heads.map(([, head]) => head))), body)),
      all.length > PAGE ? h("p", { class: "actions pager" }, before, place, after) : null,
    ),
  );
}

function rowView(row) {
  const id = row.format ? h("a", { href: linkOf(row.text, { format: row.pinned }) }, idText(row.text, 80)) : idText(row.text, 80);
  return h(
    "tr",
    { class: row.isId ? false : "none" },
    h("td", { class: "number" }, grouped(row.line)),
    h("th", { scope: "row" }, id),
    h("td", {}, row.format ?? "—"),
    h("td", { class: "id" }, row.time ?? "—"),
    h("td", { class: "number" }, row.worker === null ? "—" : grouped(row.worker), row.label ? ` ${row.label}` : null),
    h("td", { class: "number" }, row.sequence === null ? "—" : grouped(row.sequence)),
    h("td", { class: "note" }, row.note),
  );
}

/** Returns a labelled drop-down list. A choice reads the column again, and then returns the focus to the list. */
function choice(id, label, options, choose) {
  const select = h("select", { id }, options.map(([value, text, selected]) => h("option", { value, selected }, text)));
  select.addEventListener("change", async () => {
    await choose(select.value);
    document.getElementById(id)?.focus();
  });
  return h("span", { class: "value" }, h("label", { for: id }, label), select);
}

/** Returns a cell of a CSV file. A text that is not an id but would be a spreadsheet formula gets a leading apostrophe. */
function csvCell(value, isId) {
  const text = cellText(value, isId);
  return /[\x22,\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function cellText(value, isId) {
  const text = String(value ?? "");
  return !isId && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
