// Splits texts into parts that may be ids: lines, cells of a table, words of a log line or of JSON.
// Every function here takes time linear in the length of the text.

/** Returns the lines of a text, without an empty last line. */
export function linesOf(text) {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

// Returns the lines of a text that are not blank, with their line numbers. If the text is a table, `table` has its columns and
// its rows of cells.
export function split(text) {
  const lines = linesOf(text);
  const rows = lines.flatMap((line, at) => (line.trim() ? [{ line: at + 1, text: line.trim() }] : []));
  // Trimming removes a tab next to an empty first or last cell. If no separator fits the trimmed rows, try the original lines.
  const separator = rows.length > 1 ? separatorOf(rows.map((row) => row.text)) ?? separatorOf(lines.filter((line) => line.trim())) : null;
  return { rows, table: separator && tableOf(lines.join("\n"), separator) };
}

/** Separates words, which consist of the ASCII characters of ids and names, and of invisible ones, which must not be lost. */
const BETWEEN_WORDS = /[^\w!#$%&+\-./:=?@^~\p{Cf}]+/u;
/** Separates the words of JSON, where the `n` of `\n` does not belong to the next word. */
const BETWEEN_JSON_WORDS = /(?:\\[nrt]|[^\w!#$%&+\-./:=?@^~\p{Cf}])+/u;
const INSIDE_WORDS = /[=:/?&#.!]+/;
const PUNCTUATION = new Set(".!?=:");
const LEN_MIN = 6;
const LEN_MAX = 128;

/** Returns the words of a text that may be ids, such as `1I9ZC1000` in `order=1I9ZC1000`. */
export function wordsOf(text) {
  return text.split(/^\s*["[{]/.test(text) ? BETWEEN_JSON_WORDS : BETWEEN_WORDS).flatMap((word) => {
    const whole = trimmed(word);
    const parts = word.split(INSIDE_WORDS).filter((part) => part !== whole);
    return [whole, ...parts].filter(isCandidate);
  });
}

/** Returns a word without the punctuation around it. A regular expression would need quadratic time for a long row of dots. */
function trimmed(word) {
  let [from, to] = [0, word.length];
  while (from < to && PUNCTUATION.has(word[from])) from += 1;
  while (to > from && PUNCTUATION.has(word[to - 1])) to -= 1;
  return word.slice(from, to);
}

/** `false` for everyday words, dates, times of day, addresses and short numbers, which are not decoded. */
function isCandidate(text) {
  if (text.length < LEN_MIN || text.length > LEN_MAX) return false;
  if (!/\d/.test(text) && text.length < 16) return false;
  return !/^(\d{4}-\d\d-\d\d.*|\d\d:\d\d.*|[\d.]+\.[\d.]+\S*|\/.*|https?:.*|\S*@\S*)$/.test(text);
}

const SEPARATORS = ["\t", ";", "|", ",", "~", "^", "\u0001"];

/** The maximum number of rows from which `separatorOf` finds the separator. */
const SAMPLE = 50;

// Returns the separator that divides at least 80 % of the rows into as many cells as the first row, or `null`. JSON is not a
// table.
function separatorOf(rows) {
  if (/^\s*[[{]/.test(rows[0])) return null;
  const sample = rows.slice(0, SAMPLE).join("\n");
  return SEPARATORS.filter((separator) => rows[0].includes(separator)).find((separator) => {
    const counts = cellsOf(sample, separator).map((row) => row.cells.length);
    return counts[0] > 1 && counts.filter((count) => count === counts[0]).length >= counts.length * 0.8;
  }) ?? null;
}

/** The maximum number of columns. A text with more is not shown as a table. */
const COLUMNS_MAX = 500;

// Returns the table with the names of its columns. `head` is the first row if it may be a heading, and is then not among the
// rows. Returns `null` if only one column has text, as in a list with a comma after each id, or if there are too many columns.
function tableOf(text, separator) {
  const rows = cellsOf(text, separator).filter((row) => row.cells.some((cell) => cell.trim()));
  const [head, ...body] = rows;
  const isHead = body.length > 0 && head.cells.every((cell) => !/\d{3}/.test(cell));
  const filled = new Set();
  for (const { cells } of rows) cells.forEach((cell, at) => cell.trim() && filled.add(at));
  if (filled.size < 2 || filled.size > COLUMNS_MAX) return null;
  const columns = [...filled].sort((a, b) => a - b).map((at) => ({ at, name: (isHead && head.cells[at]?.trim()) || `column ${at + 1}` }));
  return { columns, head: isHead ? head : null, rows: isHead ? body : rows };
}

/** Parses CSV. A quoted cell can contain separators and newlines, and two quotes in it mean one. */
function cellsOf(text, separator) {
  const rows = [];
  let [cells, line, begun] = [[], 1, 1];
  for (let at = 0, end; at <= text.length; at = end + 1) {
    let first = at;
    while (text[first] === " ") first += 1;
    end = text[first] === QUOTE ? quotedEnd(text, first, separator) : -1;
    const isQuoted = end >= 0;
    if (!isQuoted) {
      end = at;
      while (end < text.length && text[end] !== separator && text[end] !== "\n") end += 1;
    }
    const cell = text.slice(at, end);
    cells.push(isQuoted ? cell.trim().slice(1, -1).replaceAll(QUOTE + QUOTE, QUOTE) : cell);
    if (isQuoted) line += cell.split("\n").length - 1;
    if (text[end] === separator) continue;
    rows.push({ line: begun, cells });
    line += 1;
    [cells, begun] = [[], line];
  }
  return rows;
}

const QUOTE = '"';

// Returns the end of the quoted cell whose first quote is at `first`. Returns -1 if no other quote ends the cell, because the
// first quote is then an ordinary character.
function quotedEnd(text, first, separator) {
  let last = text.indexOf(QUOTE, first + 1);
  while (last >= 0 && text[last + 1] === QUOTE) last = text.indexOf(QUOTE, last + 2);
  if (last < 0) return -1;
  let end = last + 1;
  while (text[end] === " ") end += 1;
  return end === text.length || text[end] === separator || text[end] === "\n" ? end : -1;
}
