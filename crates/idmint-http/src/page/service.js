// Requests to the service, with the token of the user. Responses that do not change are cached.

const BASE = new URL("./", location.href.split("#")[0]);

/** The maximum number of attempts to send a request while the service is busy. */
const TRIES = 6;

let token = "";
let isMintRefused = false;
const watchers = [];
const answers = new Map();

/** A refused request, with the texts of the service's problem document. Status 0 means that there was no response. */
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

/** Returns the full address of a path. A proxy may serve the page below any path, so the address is relative to the page. */
export function addressOf(path) {
  return new URL(path, BASE).href;
}

/** Returns the fragment of the address at which this page decodes a text. `pinned` selects a format and an encoding. */
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

/** Registers a function that is called whenever the token has changed. */
export function onTokenChange(watcher) {
  watchers.push(watcher);
}

function setToken(value) {
  token = value;
  answers.clear();
  isMintRefused = false;
  for (const watcher of watchers) watcher();
}

/** Sends a request. Asks the user for a token if the service requires one. */
export async function ask(path, { method = "GET", accept = "application/json", type, body, signal } = {}) {
  const begun = performance.now();
  for (let shown = token; ; shown = token) {
    const headers = { accept };
    if (type) headers["content-type"] = type;
    if (shown) headers.authorization = `Bearer ${shown}`;
    let answer;
    try {
      answer = await fetch(addressOf(path), { method, headers, body, signal, cache: "no-store", credentials: "same-origin", redirect: "manual" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal(0, { title: "The service does not answer", detail: "Nothing came back: the service or the way to it is down." });
    }
    if (answer.type === "opaqueredirect") throw new Refusal(0, { title: "The service does not answer", detail: "A redirect came back. If a proxy wants you to sign in again, reload the page." });
    if (answer.ok) return answer;
    const refusal = new Refusal(answer.status, await answer.json().catch(() => ({})));
    if (answer.status !== 401 || (begun <= declined && token === shown)) throw refusal;
    // Another request may have got a token in the meantime. The loop then tries that token, without asking the user.
    if (token === shown && !(await askForToken(shown ? "This token is not accepted. Another may be." : undefined))) throw refusal;
  }
}

/** Sends a request, and retries while the service is busy. */
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
/** The time at which the user last refused to enter a token. Requests that began earlier do not ask again. */
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

/** Returns a response that stays the same while the service runs. It is requested only once for each token. */
function once(path) {
  if (!answers.has(path)) {
    const answer = ask(path).then((answer) => answer.json());
    answers.set(path, answer);
    answer.catch(() => answers.delete(path));
  }
  return answers.get(path);
}

/** Returns all formats of the service. With `isBrief`, each has only its name, summary, rule and example. */
export async function formats(isBrief = false) {
  return (await once(isBrief ? "formats?detail=brief" : "formats")).formats;
}

/** Returns the description of one format. */
export function formatOf(name) {
  return once(`formats/${encodeURIComponent(name)}`);
}

async function postTexts(path, query, texts, accept) {
  const known = Object.entries(query).filter(([, value]) => value);
  const body = JSON.stringify(texts.map((text) => text.toWellFormed()));
  return askPatiently(`${path}?${new URLSearchParams(known)}`, { method: "POST", type: "application/json", body, accept });
}

/** Decodes texts, and returns the result of each, in the same order. */
export async function decode(texts, { detail = "brief", isLenient = true, format, encoding } = {}) {
  const answer = await postTexts("decode", { detail, lenient: isLenient, format, encoding }, texts);
  return answer.json();
}

/** The number of rows that are parsed before the page may draw and handle input again. */
const ROWS_AT_ONCE = 500;

/** Decodes a column of texts. Returns the verdict on the column, and the result of each row. */
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

/** Returns the path and the query of the mint request for these ids. */
export function mintPath({ format, ...query }) {
  const asked = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const text = new URLSearchParams(asked).toString();
  return `ids/${encodeURIComponent(format)}${text && `?${text}`}`;
}

/** `true` until the service refuses a mint of this caller. */
export function mayMint() {
  return !isMintRefused;
}

/** Mints ids and returns them. */
export async function mint(order) {
  const answer = await ask(mintPath(order), { method: "POST", accept: "text/plain" }).catch((error) => {
    if (error.status === 403) isMintRefused = true;
    throw error;
  });
  return (await answer.text()).split("\n").slice(0, -1);
}
