// Texts cut into what may be ids: lines of a column, cells of a CSV file, words of a log line.

/** The lines of a text; an empty last one counts for nothing. */
export function linesOf(text) {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** What may be ids in a line of a log, each once. */
export function candidates(line) {
  const found = new Set();
  for (const word of line.slice(0, 65_536).split(/[\s"'`,;|()[\]{}<>]+/)) {
    for (const piece of [word, ...word.split(/[=:/?&#]+/)]) {
      const text = piece.replace(/^[.!?=:]+|[.!?=:]+$/g, "");
      if (isCandidate(text)) found.add(text);
    }
  }
  return [...found].slice(0, 200);
}

/** Not an everyday word, a day, a time of day, an address or a short number. */
function isCandidate(text) {
  if (text.length < 6 || text.length > 128) return false;
  if (!/\d/.test(text) && text.length < 16) return false;
  return !/^(\d{4}-\d\d-\d\d.*|\d\d:\d\d.*|[\d.]+\.[\d.]+\S*|\/.*|https?:.*|\S*@\S*)$/.test(text);
}

/** The rows of a CSV file; quotes hold separators and newlines, two of them are one. */
function readCsv(text, separator) {
  const rows = [];
  let row = [];
  let cell = "";
  let isQuoted = false;
  let line = 1;
  let begun = 1;
  const endRow = () => {
    row.push(cell);
    rows.push({ line: begun, cells: row });
    row = [];
    cell = "";
  };
  for (let at = 0; at < text.length; at += 1) {
    const letter = text[at];
    if (letter === "\n") line += 1;
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') (cell += letter), (at += 1);
      else isQuoted = false;
    } else if (letter === '"' && cell === "") isQuoted = true;
    else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n") {
      endRow();
      begun = line;
    } else if (letter !== "\r") cell += letter;
  }
  if (cell !== "" || row.length) endRow();
  return rows;
}

/** The separator, if most lines have as many as the first, and the first has some. */
function separatorOf(lines) {
  const first = lines.slice(0, 50).join("\n");
  for (const separator of ["\t", ";", "|", ","]) {
    const counts = readCsv(first, separator).map((row) => row.cells.length);
    if (counts[0] > 1 && counts.filter((count) => count === counts[0]).length >= counts.length * 0.8) return separator;
  }
  return null;
}

/** What a text of many lines is: rows with what may be ids, and the columns of a table if it is one. */
export function readColumn(text) {
  const lines = linesOf(text);
  const separator = separatorOf(lines.filter((line) => line.trim()));
  if (separator) {
    const rows = readCsv(text, separator).filter((row) => row.cells.some((cell) => cell.trim()));
    const [head, ...body] = rows;
    const isHead = body.length > 0 && head.cells.every((cell) => !/\d{3}/.test(cell));
    const width = Math.max(...rows.slice(0, 200).map((row) => row.cells.length));
    const names = Array.from({ length: width }, (_, at) => (isHead && head.cells[at]?.trim()) || `column ${at + 1}`);
    return { columns: names, table: isHead ? body : rows, rows: [] };
  }
  const rows = lines.flatMap((line, at) => (line.trim() ? [{ line: at + 1, text: line.trim() }] : []));
  return { columns: null, rows };
}

/** A cell of a CSV file. What is no id and would be a formula in a spreadsheet begins with an apostrophe. */
export function csvCell(value, isId = false) {
  const text = String(value ?? "");
  const safe = !isId && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
