// What the page asks of its service, and the token that it shows.

const BASE = new URL("./", location.href.split("#")[0]);

/** The number of attempts while the service is busy. */
const TRIES = 6;

let token = "";
let isMintRefused = false;
const watchers = [];
const answers = new Map();

/** A refusal, in the words of the service. */
class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `The service answered ${status}.`);
    this.status = status;
    this.title = problem.title ?? `The service answered ${status}`;
    this.detail = problem.detail;
    this.retryAfter = problem.retry_after_ms;
    const slug = /^\/problems\/([a-z-]+)$/.exec(problem.type ?? "")?.[1];
    this.page = slug && `problems/${slug}`;
  }
}

/** The address of a path of this service, wherever it is served. */
export function addressOf(path) {
  return new URL(path, BASE).href;
}

/** The part of an address that leads to a reading of a text. */
export function linkOf(text, pinned = {}) {
  const query = new URLSearchParams(Object.entries(pinned).filter(([, value]) => value)).toString();
  return `#/${encodeURIComponent(text.toWellFormed())}${query && `?${query}`}`;
}

export function hasToken() {
  return token !== "";
}

export function forgetToken() {
  setToken("");
}

/** Called whenever the token has changed. */
export function onTokenChange(watcher) {
  watchers.push(watcher);
}

function setToken(value) {
  token = value;
  answers.clear();
  isMintRefused = false;
  for (const watcher of watchers) watcher();
}

/** Sends a request. Asks the user for a token if the service wants one. */
export async function ask(path, { method = "GET", accept = "application/json", type, body, signal } = {}) {
  const begun = performance.now();
  for (let shown = token; ; shown = token) {
    const headers = { accept };
    if (type) headers["content-type"] = type;
    if (shown) headers.authorization = `Bearer ${shown}`;
    let answer;
    try {
      answer = await fetch(addressOf(path), { method, headers, body, signal, cache: "no-store", credentials: "same-origin", redirect: "error" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(0, { title: "The service does not answer", detail: "Nothing came back: the service or the way to it is down." });
    }
    if (answer.ok) return answer;
    const refusal = new Refusal(answer.status, await answer.json().catch(() => ({})));
    if (answer.status !== 401 || (begun <= declined && token === shown)) throw refusal;
    // Another request may have got one meanwhile.
    if (token === shown && !(await askForToken(shown ? "This token is not accepted. Another may be." : undefined))) throw refusal;
  }
}

/** Sends a request again while the service is busy. */
async function askPatiently(path, options) {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await ask(path, options);
    } catch (error) {
      if (left === 1 || (error.status !== 503 && error.status !== 429)) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(error.retryAfter ?? 500, 5000)));
    }
  }
}

let asking = null;
/** When somebody would not give one: what was asked before is not asked for again. */
let declined = -1;

function askForToken(why = "This service asks callers for a token.") {
  asking ??= new Promise((resolve) => {
    const [dialog, form, field] = ["token-dialog", "token-form", "token"].map((id) => document.getElementById(id));
    document.getElementById("token-why").textContent = why;
    field.value = "";
    const stop = new AbortController();
    const end = (value) => {
      stop.abort();
      asking = null;
      field.value = "";
      dialog.close();
      if (value) setToken(value);
      else declined = performance.now();
      resolve(Boolean(value));
    };
    form.addEventListener("submit", (event) => (event.preventDefault(), end(field.value.trim())), { signal: stop.signal });
    document.getElementById("token-cancel").addEventListener("click", () => end(""), { signal: stop.signal });
    dialog.addEventListener("cancel", () => end(""), { signal: stop.signal });
    dialog.showModal();
    field.focus();
  });
  return asking;
}

/** The answer of a path that stays the same while the service runs. It is asked for once. */
function once(path) {
  if (!answers.has(path)) {
    const answer = ask(path).then((answer) => answer.json());
    answers.set(path, answer);
    answer.catch(() => answers.delete(path));
  }
  return answers.get(path);
}

/** Every format of this service: with `isBrief` its name, summary, rule and example. */
export async function formats(isBrief = false) {
  return (await once(isBrief ? "formats?detail=brief" : "formats")).formats;
}

/** The description of one format. */
export function formatOf(name) {
  return once(`formats/${encodeURIComponent(name)}`);
}

async function postTexts(path, query, texts, accept) {
  const known = Object.entries(query).filter(([, value]) => value);
  const body = JSON.stringify(texts.map((text) => text.toWellFormed()));
  return askPatiently(`${path}?${new URLSearchParams(known)}`, { method: "POST", type: "application/json", body, accept });
}

/** The readings of each text, in their order. */
export async function decode(texts, { detail = "brief", isLenient = true, format, encoding } = {}) {
  const answer = await postTexts("decode", { detail, lenient: isLenient, format, encoding }, texts);
  return answer.json();
}

/** The number of rows that are parsed before the page may draw and listen. */
const ROWS_AT_ONCE = 500;

/** The verdict on a column, and the reading of each row. */
export async function decodeColumn(texts, format) {
  const answer = await postTexts("decode", { column: true, lenient: true, format }, texts, "application/x-ndjson");
  const [verdict, ...lines] = (await answer.text()).trimEnd().split("\n");
  const rows = [];
  for (const line of lines) {
    rows.push(JSON.parse(line));
    if (rows.length % ROWS_AT_ONCE === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return { verdict: JSON.parse(verdict).column, rows };
}

/** The request that mints these: its path and query. */
export function mintPath({ format, ...query }) {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(asked).toString();
  return `ids/${encodeURIComponent(format)}${text && `?${text}`}`;
}

/** `true` until a mint is refused to this caller. */
export function mayMint() {
  return !isMintRefused;
}

/** Mints, and returns the ids. */
export async function mint(order) {
  const answer = await ask(mintPath(order), { method: "POST", accept: "text/plain" }).catch((error) => {
    if (error.status === 403) isMintRefused = true;
    throw error;
  });
  return (await answer.text()).split("\n").slice(0, -1);
}
