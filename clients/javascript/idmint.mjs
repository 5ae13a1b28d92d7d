// SPDX-License-Identifier: Apache-2.0
/**
 * Client of an idmint service: failover, and a prefetched stock of ids, so that most ids cost no request.
 *
 * Install the package, or copy this file, and idmint.d.mts for TypeScript. It needs Node 18 or a browser, and nothing else:
 *
 *     import { Ids } from "./idmint.mjs";
 *     const ids = new Ids(["http://10.0.0.1:8080", "http://10.0.0.2:8080"], "snowflake", { token: "…" });
 *     await ids.next();                // a string; an id from the stock is returned at once and needs no await
 *     await ids.nextBigInt();          // a bigint, for formats that have numbers
 *     await ids.mint(1000);            // also decode("1573542478315782144"), append("aa77f99c", [{ event: "Paid", entities: {} }])
 *     await ids.number("acme-2026", "order-4711"); // the next number of a series without gaps, the same one for the same key
 *     await ids.close();
 *
 * Every call ends within its timeout, or when the AbortSignal in `{ signal }` is aborted. It fails with an IdmintError, whose `code`
 * is "refused", "unavailable", "bad-response" or "closed"; an aborted call fails with the reason of its signal.
 *
 * Create one Ids per process or page. JavaScript cannot fork without exec. If a machine or container is copied while it runs (a
 * snapshot that is restored twice), create the Ids after the copy, because nothing signals the copy to a process. In Node,
 * NODE_EXTRA_CA_CERTS names the file of an authority to trust with https.
 */

/** The version of this client. */
export const version = "0.1.0";

const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 5_000;
const RETRY_AFTER_MAX_MS = 30_000;
const BODY_MAX = 64 * 1024 * 1024;
/** The service counts a request for more ids as bulk work, which it refuses first. */
const BULK = 1024;
const TRANSIENT = [429, 502, 503, 504];
const NOT_SENT = ["EAI_AGAIN", "ECONNREFUSED", "ENOTFOUND", "UND_ERR_CONNECT_TIMEOUT"];
const VISIBLE_ASCII = /^[!-~]+$/;
/** A page cannot send it to another origin without permission, so only programs say who they are. */
const AGENT = globalThis.process?.versions?.node ? { "user-agent": `idmint-javascript/${version}` } : {};

const REMEDIES = {
  401: "set token to one that http.tokens of the service has",
  403: "the token, or the origin of this page, does not cover this: see http.tokens and http.cors_origins of the service",
  421: "use a host name of the service, or add this one to its http.hosts",
};

/** The error of a call. `status`, `slug` (of /problems/{slug}) and `reason` are undefined if there was no response. */
export class IdmintError extends Error {
  constructor(code, message, { status, problem = {}, retryAfterMs = 0, outcomeUnknown = false, cause } = {}) {
    super(message, { cause });
    this.name = "IdmintError";
    this.code = code;
    this.status = status;
    this.problem = problem;
    this.slug = typeof problem.type === "string" ? problem.type.split("/").pop() : undefined;
    this.reason = typeof problem.reason === "string" ? problem.reason : undefined;
    this.retryAfterMs = retryAfterMs;
    /** Whether the service may have done what was asked although the call failed. */
    this.outcomeUnknown = outcomeUnknown;
  }
}

/** A copy for another call. */
function again(error, outcomeUnknown) {
  return new IdmintError(error.code, error.message, { ...error, cause: error.cause, outcomeUnknown });
}

/** Ids of one format. */
export class Ids {
  #asking;
  #format;
  #query;
  /** Makes a text of a number. Undefined until the service has described the format; null if only the service makes texts. */
  #textOf;
  #learning = null;
  #numbers;
  #texts;

  /** The options are those of idmint.d.mts. Throws a RangeError or a TypeError if an argument is wrong. Sends nothing yet. */
  constructor(urls, format, options = {}) {
    const { token, prefetchCount = 100, prefetchCountMax = 10_000, prefetchValidity = 60, timeout = 10, query = {} } = options;
    if (!(prefetchCount >= 1 && prefetchCount <= prefetchCountMax)) {
      throw new RangeError(`prefetchCount must be from 1 to prefetchCountMax (${prefetchCountMax}), got ${prefetchCount}`);
    }
    if (!(prefetchValidity > 0 && timeout > 0 && timeout <= 2_000_000)) {
      throw new RangeError("prefetchValidity and timeout must be seconds above 0, and timeout at most 2000000");
    }
    this.#asking = new Asking(typeof urls === "string" ? [urls] : urls, token, timeout * 1000);
    this.#format = encodeURIComponent(format);
    this.#query = query;
    const sizes = [prefetchCount, prefetchCountMax, prefetchValidity * 1000, timeout * 1000];
    this.#numbers = new Stock((count) => this.#fetchRows(count), ...sizes);
    this.#texts = new Stock((count) => this.#fetchTexts(count), ...sizes);
  }

  /** Returns the next id as a string, or a promise of one while the stock is empty. */
  next(options) {
    const textOf = this.#textOf;
    if (textOf) {
      const id = this.nextBigInt(options);
      return typeof id === "bigint" ? textOf(id) : id.then(textOf);
    }
    if (textOf === undefined) {
      this.#learning ??= this.#learn();
      return until(this.#learning, options?.signal).then(() => this.next(options));
    }
    const piece = this.#texts.piece;
    if (piece.taken < piece.count && now() < piece.expires) {
      return piece.take();
    }
    return this.#texts.nextOfAnother(options?.signal);
  }

  /** Returns the next id as a bigint, or a promise of one while the stock is empty. */
  nextBigInt(options) {
    const numbers = this.#numbers;
    const piece = numbers.piece;
    if (piece.taken < piece.count && now() < piece.expires) {
      piece.taken += 1;
      const id = piece.next;
      piece.next = id + piece.step;
      return id;
    }
    return numbers.nextOfAnother(options?.signal);
  }

  /** Mints ids now and returns their texts: all of them or none. A retry mints other ids, so no id comes twice. */
  async mint(count, options) {
    return this.#asking.send({ method: "POST", target: this.#target(count), parse: textsOf(count) }, options?.signal);
  }

  /** Returns the response of GET /decode/{id}: the possible readings of a text. Fails with status 404 if it is no id. */
  async decode(text, options) {
    return this.#asking.send({ method: "GET", target: `/decode/${encodeURIComponent(text)}`, parse: objectOf }, options?.signal);
  }

  /** Appends events to a ledger and returns their ids. Appends once, however often the request is sent. */
  async append(ledger, events, options) {
    const headers = { "idempotency-key": await randomKey(), "content-type": "application/json" };
    const target = `/ledgers/${encodeURIComponent(ledger)}/events`;
    const request = { method: "POST", target, headers, body: JSON.stringify({ events }), parse: textsOf(events.length) };
    return this.#asking.send(request, options?.signal);
  }

  /** Returns the next number of a series without gaps, in decimal digits, and its text. The same key always gets the same number. */
  async number(series, key, options) {
    if (!VISIBLE_ASCII.test(key)) {
      throw new TypeError("a key must be one or more visible ASCII characters");
    }
    const parse = ({ number, text }) => ({ number: String(decimal(number)), text: textOf(text) });
    const target = `/numbers/${encodeURIComponent(series)}`;
    return this.#asking.send({ method: "POST", target, headers: { "idempotency-key": key }, parse }, options?.signal);
  }

  /** Ends what is under way. Ids that were not handed out stay gaps. */
  async close() {
    this.#asking.close();
    await Promise.all([this.#numbers.close(), this.#texts.close()]);
  }

  toJSON() {
    throw new TypeError("a stock of ids cannot be copied: two owners would hand out the same ids; make another Ids");
  }

  #target(count) {
    return `/ids/${this.#format}?${new URLSearchParams({ ...this.#query, count })}`;
  }

  async #learn() {
    try {
      const parse = (format) => numberText(format, this.#query);
      this.#textOf = await this.#asking.send({ method: "GET", target: `/formats/${this.#format}`, parse });
    } catch (failure) {
      if (failure.code !== "refused") {
        throw failure;
      }
      // A token that may mint need not be allowed to read formats. The request for texts reports every other error.
      this.#textOf = null;
    } finally {
      this.#learning = null;
    }
  }

  async #fetchRows(count) {
    const headers = { accept: "application/vnd.idmint.rows+json" };
    return this.#asking.send({ method: "POST", target: this.#target(count), headers, count, parse: rowsOf(count) });
  }

  async #fetchTexts(count) {
    return [new Texts(await this.#asking.send({ method: "POST", target: this.#target(count), count, parse: textsOf(count) }))];
  }
}

function objectOf(answer) {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) {
    throw new TypeError("the response is not a JSON object");
  }
  return answer;
}

function textOf(value) {
  if (typeof value !== "string" || value === "") {
    throw new TypeError("the response has a member that is not a string");
  }
  return value;
}

function decimal(text) {
  if (typeof text !== "string" || !/^[0-9]{1,39}$/.test(text)) {
    throw new TypeError("the response has an id that is not a decimal number");
  }
  return BigInt(text);
}

const textsOf = (count) => ({ ids }) => {
  if (!Array.isArray(ids) || ids.length !== count) {
    throw new TypeError("the response has another number of ids than requested");
  }
  return ids.map(textOf);
};

const rowsOf = (count) => (answer) => {
  const rows = answer.rows.map((row) => {
    const [first, step] = [decimal(row.first), decimal(row.step)];
    if (!Number.isSafeInteger(row.count) || row.count < 1 || (step === 0n && row.count > 1) || (first + step * BigInt(row.count)) >> 128n) {
      throw new TypeError("the response has no row of ids");
    }
    return new Row(first, step, row.count);
  });
  if (rows.reduce((sum, row) => sum + row.count, 0) !== count) {
    throw new TypeError("the response has another number of ids than requested");
  }
  return rows;
};

/** Returns what makes a text of a number, or null unless the text is plain decimal, hexadecimal or base 36. */
function numberText(format, query) {
  const encoding = format.encodings.find((some) => query.encoding === undefined || query.encoding === some.name);
  // The service returns numbers only for sequenced formats.
  if (format.rule !== "sequenced" || !format.minted || encoding === undefined || "prefix" in query) {
    return null;
  }
  for (const [radix, span] of [[10, ""], [16, "a-f"], [16, "A-F"], [36, "a-z"], [36, "A-Z"]]) {
    const free = new RegExp(String.raw`^\^\(\?:0\|\[1-9${span}\]\[0-9${span}\]\{0,\d+\}\)\$$`);
    if (encoding.pattern === `^[0-9${span}]{${encoding.length}}$` || free.test(encoding.pattern)) {
      const length = encoding.length ?? 1;
      const lower = (number) => number.toString(radix).padStart(length, "0");
      const textOf = span < "A" || span > "a" ? lower : (number) => lower(number).toUpperCase();
      // An alphabet in another order has the same pattern, so compare the example.
      return textOf(decimal(format.example.value)) === format.example.encodings[encoding.name] ? textOf : null;
    }
  }
  return null;
}

/** A row of numbers. */
class Row {
  taken = 0;
  expires = 0;
  /** Whether more are fetched when it is begun. */
  isSecondHalf = false;

  constructor(first, step, count) {
    this.next = first;
    this.step = step;
    this.count = count;
  }

  take() {
    this.taken += 1;
    const id = this.next;
    this.next += this.step;
    return id;
  }

  /** Keeps the first ids and returns the rest. */
  split(kept) {
    const rest = new Row(this.next + BigInt(kept) * this.step, this.step, this.count - kept);
    this.count = kept;
    return rest;
  }
}

/** Texts of one response. */
class Texts {
  taken = 0;
  expires = 0;
  isSecondHalf = false;

  constructor(texts) {
    this.texts = texts;
    this.count = texts.length;
  }

  take() {
    return this.texts[this.taken++];
  }

  split(kept) {
    const rest = new Texts(this.texts.slice(kept));
    this.count = kept;
    return rest;
  }
}

/** Prefetched ids. One request at a time fetches more when the second half is begun. */
class Stock {
  #fetch;
  #pieces = [];
  #count;
  #countMin;
  #countMax;
  #validityMs;
  #timeoutMs;
  #filledAt = -Infinity;
  #growsAt = -Infinity;
  #filling = null;
  #error;
  #failures = 0;
  #retryAt = -Infinity;
  #isClosed = false;
  piece = new Row(0n, 0n, 0);

  constructor(fetch, count, countMax, validityMs, timeoutMs) {
    this.#fetch = fetch;
    this.#count = this.#countMin = count;
    this.#countMax = countMax;
    this.#validityMs = validityMs;
    this.#timeoutMs = timeoutMs;
  }

  nextOfAnother(signal) {
    const id = this.#advance();
    return id === undefined ? this.#waitForNext(signal) : id;
  }

  async #waitForNext(signal) {
    const deadline = now() + this.#timeoutMs;
    for (;;) {
      // This waiting caller gets the error of the request that it waited for, however late its turn comes.
      const error = await until(this.#filling, signal, deadline - now());
      const id = this.#takeIfFresh() ?? this.#advance(error);
      if (id !== undefined) {
        return id;
      }
    }
  }

  #takeIfFresh() {
    const piece = this.piece;
    return piece.taken < piece.count && now() < piece.expires ? piece.take() : undefined;
  }

  /** Returns the first id of the next fresh piece, or undefined while more are fetched. */
  #advance(error) {
    if (this.#isClosed) {
      throw closed();
    }
    let id;
    const wasUsedUp = now() < this.piece.expires;
    while (id === undefined && this.#pieces.length > 0) {
      this.piece = this.#pieces.shift();
      id = this.#takeIfFresh();
      if (id === undefined && this.piece.isSecondHalf) {
        // The ids expired before use, so fetch fewer.
        this.#count = Math.max(this.#countMin, this.#count >> 1);
      }
    }
    const isWaiting = this.#filling === null && now() < this.#retryAt;
    if (id === undefined && (error || isWaiting)) {
      throw again(error ?? this.#error, false);
    }
    if ((id === undefined || this.piece.isSecondHalf) && this.#filling === null && !isWaiting) {
      if (wasUsedUp && now() - this.#filledAt < 1000) {
        const most = now() < this.#growsAt ? Math.min(this.#countMax, BULK) : this.#countMax;
        this.#count = Math.max(this.#count, Math.min(most, this.#count * 2));
      }
      this.#filling = this.#fill();
    }
    return id;
  }

  /** Never rejects; returns the error. */
  async #fill() {
    let error;
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const [askedAt, count] = [now(), this.#count];
      error = undefined;
      try {
        const pieces = halved(await this.#fetch(count));
        for (const piece of pieces) {
          piece.expires = askedAt + this.#validityMs;
        }
        if (!this.#isClosed) {
          this.#pieces.push(...pieces);
        }
        break;
      } catch (failure) {
        error = failure instanceof IdmintError ? failure : new IdmintError("unavailable", `ids cannot be fetched: ${failure}`, { cause: failure });
        if (!this.#asksForFewerAfter(error, count)) {
          break;
        }
      }
    }
    this.#failures = error ? this.#failures + 1 : 0;
    this.#error = error;
    this.#filledAt = now();
    this.#retryAt = this.#filledAt + backoff(this.#failures);
    this.#filling = null;
    return error;
  }

  #asksForFewerAfter({ status, reason, problem }, count) {
    const most = typeof problem.limit === "string" ? Number(problem.limit) : 0;
    if (status === 422 && reason === "count" && Number.isInteger(most) && most > 0 && most < count) {
      // The service never grants this many at once, so ask for its limit from now on.
      this.#count = this.#countMax = most;
      this.#countMin = Math.min(this.#countMin, most);
      return true;
    }
    if (status === 503 && count > BULK) {
      this.#count = BULK;
      this.#growsAt = now() + 60_000;
      return true;
    }
    return false;
  }

  async close() {
    this.#isClosed = true;
    this.#pieces = [];
    this.piece = new Row(0n, 0n, 0);
    await this.#filling;
  }
}

/** Splits pieces so that one begins in the middle of all ids. */
function halved(pieces) {
  const all = pieces.reduce((sum, piece) => sum + piece.count, 0);
  let before = 0;
  for (const [at, piece] of pieces.entries()) {
    if (before + piece.count > all >> 1) {
      const second = piece.split((all >> 1) - before);
      second.isSecondHalf = true;
      return [...pieces.slice(0, at), piece, second, ...pieces.slice(at + 1)].filter((part) => part.count > 0);
    }
    before += piece.count;
  }
  return pieces;
}

/** Requests to any address that answers. */
class Asking {
  #addresses;
  #headers = { ...AGENT };
  #token;
  #timeoutMs;
  /** The address that answered last. */
  #first = 0;
  /** Whether a call timed out and no address has answered since. */
  #isAway = false;
  #ended = new AbortController();

  constructor(urls, token, timeoutMs) {
    if (urls.length === 0) {
      throw new RangeError("urls must have at least one address");
    }
    this.#addresses = urls.map((url) => ({ url: addressOf(url), failures: 0, notBefore: -Infinity, failure: undefined }));
    if (token) {
      this.#token = token.trim();
      if (!VISIBLE_ASCII.test(this.#token)) {
        throw new TypeError("token must be one or more visible ASCII characters");
      }
      this.#headers.authorization = `Bearer ${this.#token}`;
    }
    this.#timeoutMs = timeoutMs;
  }

  close() {
    this.#ended.abort();
  }

  /** Sends a request that may be repeated, until an address answers or the time is up. */
  async send(request, signal) {
    const deadline = now() + this.#timeoutMs;
    // If any address is too busy for so many ids, the next request asks for fewer.
    const isBusy = (error) => request.count > BULK && error.status === 503;
    for (let outcomeUnknown = false; ; ) {
      let error;
      const first = this.#first;
      for (let place = 0; place < this.#addresses.length; place += 1) {
        const at = (first + place) % this.#addresses.length;
        const address = this.#addresses[at];
        let { failure } = address;
        if (!failure || now() >= address.notBefore) {
          this.#throwIfEnded(signal, outcomeUnknown);
          try {
            const answer = await this.#attempt(address, request, signal, deadline);
            this.#first = at;
            this.#isAway = false;
            Object.assign(address, { failures: 0, notBefore: -Infinity, failure: undefined });
            return answer;
          } catch (raised) {
            failure = raised;
            outcomeUnknown ||= failure.outcomeUnknown;
          }
          this.#throwIfEnded(signal, outcomeUnknown);
          if (failure.code === "refused") {
            Object.assign(address, { failures: 0, notBefore: -Infinity, failure: undefined });
            throw again(failure, outcomeUnknown);
          }
          address.failure = failure;
          address.failures += 1;
          address.notBefore = now() + Math.max(failure.retryAfterMs, backoff(address.failures));
        }
        if (!error || error.code === "bad-response" || (isBusy(failure) && !isBusy(error))) {
          error = failure;
        }
      }
      const wait = Math.min(...this.#addresses.map((address) => address.notBefore)) - now();
      const isLate = now() + wait > deadline;
      if (this.#isAway || isLate || error.code === "bad-response" || isBusy(error)) {
        // From now on calls fail at once, until one of them finds that an address answers.
        this.#isAway ||= isLate;
        throw again(error, outcomeUnknown);
      }
      await this.#sleep(wait, signal);
    }
  }

  #throwIfEnded(signal, outcomeUnknown) {
    if (this.#ended.signal.aborted) {
      throw closed(outcomeUnknown);
    }
    if (signal?.aborted) {
      throw signal.reason;
    }
  }

  async #attempt(address, { method, target, headers, body, parse }, signal, deadline) {
    // Each address gets its share of the time. Meanwhile an address that has failed gets no second request.
    const share = Math.max(50, Math.min(this.#timeoutMs / (this.#addresses.length + 1), deadline - now()));
    address.notBefore = now() + share;
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(new Error(`no response within ${Math.round(share)} ms`)), share);
    const end = () => attempt.abort();
    const signals = signal ? [signal, this.#ended.signal] : [this.#ended.signal];
    signals.forEach((one) => one.addEventListener("abort", end));
    let response, text;
    try {
      const all = { ...this.#headers, ...headers };
      response = await fetch(address.url + target, { method, headers: all, body, signal: attempt.signal, redirect: "manual" });
      text = await bodyOf(response);
    } catch (failure) {
      attempt.abort();
      const { message: why, code } = failure.cause ?? failure;
      const message = this.#withoutToken(`${address.url} does not respond: ${why}`);
      // A copy, because the error of Node has the response, in which the server may repeat the token.
      const cause = Object.assign(new Error(this.#withoutToken(String(why))), { code });
      if (/CERT|ISSUER|LEAF_SIGNATURE/.test(code)) {
        throw new IdmintError("refused", `${message}; set NODE_EXTRA_CA_CERTS to the certificate of its authority`, { cause });
      }
      throw new IdmintError("unavailable", message, { cause, outcomeUnknown: !NOT_SENT.includes(code) });
    } finally {
      clearTimeout(timer);
      signals.forEach((one) => one.removeEventListener("abort", end));
    }
    // Errors quote the body, in which the server may repeat the token.
    text = this.#withoutToken(text);
    if (!response.ok) {
      throw refusal(address.url, response, text, this.#token);
    }
    try {
      return parse(JSON.parse(text));
    } catch (cause) {
      const details = { status: response.status, outcomeUnknown: true, cause };
      throw new IdmintError("bad-response", `the server at ${address.url} is not an idmint service; check the address`, details);
    }
  }

  #withoutToken(text) {
    return this.#token ? text.replaceAll(this.#token, "(token)") : text;
  }

  #sleep(ms, signal) {
    return new Promise((resolve) => {
      const signals = signal ? [signal, this.#ended.signal] : [this.#ended.signal];
      const end = () => {
        clearTimeout(timer);
        signals.forEach((one) => one.removeEventListener("abort", end));
        resolve();
      };
      const timer = setTimeout(end, ms);
      signals.forEach((one) => one.addEventListener("abort", end));
    });
  }
}

/** Checks an address. No message has its user name or password. */
function addressOf(given) {
  const url = given.includes("://") ? given : `http://${given}`;
  const shown = JSON.stringify(given.replace(/^.*@/s, "…@"));
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    // Reported below.
  }
  if (!/^https?:$/.test(parsed?.protocol ?? "") || !VISIBLE_ASCII.test(url)) {
    throw new RangeError(`${shown} is not the address of an idmint service, such as http://127.0.0.1:8080`);
  }
  if (given.includes("@") || parsed.search || parsed.hash) {
    throw new RangeError(`${shown} has a user name, a query or a fragment, which the address of an idmint service must not have`);
  }
  return url.replace(/\/+$/, "");
}

async function bodyOf(response) {
  const [decoder, parts] = [new TextDecoder(), []];
  const reader = response.body?.getReader();
  let size = 0;
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    size += part.value.length;
    if (size > BODY_MAX) {
      throw new Error("the response body is too long");
    }
    parts.push(decoder.decode(part.value, { stream: true }));
  }
  return parts.join("") + decoder.decode();
}

function refusal(url, response, text, token) {
  let problem;
  try {
    problem = objectOf(JSON.parse(text));
    if (token) {
      // A text of JSON may write the token with escapes, so compare what this program writes.
      problem = JSON.parse(JSON.stringify(problem).replaceAll(JSON.stringify(token).slice(1, -1), "(token)"));
    }
  } catch {
    // Something else answers, such as a proxy.
    problem = {};
  }
  const { status } = response;
  // In a browser a redirect has no status.
  const redirects = response.type === "opaqueredirect" || (status >= 300 && status < 400);
  const said = (member) => (typeof problem[member] === "string" ? problem[member] : "");
  const remedy = REMEDIES[status] ?? (said("example") && `this works: ${said("example")}`);
  const detail = said("detail") || (redirects ? "it redirects, which is not followed" : "no reason is given");
  const message = `${url} answers ${status}: ${detail.slice(0, 1000)}`;
  const wait = typeof problem.retry_after_ms === "number" ? problem.retry_after_ms : Number(response.headers.get("retry-after")) * 1000;
  const retryAfterMs = wait > 0 ? Math.min(wait, RETRY_AFTER_MAX_MS) : 0;
  const details = { status, problem, retryAfterMs, outcomeUnknown: status >= 500 && status !== 503 };
  return new IdmintError(TRANSIENT.includes(status) ? "unavailable" : "refused", remedy ? `${message}; ${remedy}` : message, details);
}

function closed(outcomeUnknown = false) {
  return new IdmintError("closed", "this Ids is closed; create another one", { outcomeUnknown });
}

/** Waits for a promise until the signal is aborted or the time is up. */
function until(promise, signal, ms) {
  return new Promise((resolve, reject) => {
    const timer = ms === undefined ? undefined : setTimeout(end, ms, new IdmintError("unavailable", "the service sent no ids within the timeout"));
    const abort = () => end(signal.reason);
    function end(failure) {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      reject(failure);
    }
    if (signal?.aborted) {
      abort();
    }
    signal?.addEventListener("abort", abort);
    promise.then((value) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      resolve(value);
    }, end);
  });
}

/** A pause that doubles with each failure, with jitter. */
function backoff(failures) {
  return failures ? Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** (failures - 1)) * (0.5 + Math.random() / 2) : 0;
}

function now() {
  return performance.now();
}

/** 128 random bits. In Node 18 `crypto` is no global, and on pages without TLS it has no `randomUUID`. */
async function randomKey() {
  const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
