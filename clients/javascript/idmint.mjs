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
 * Give several addresses to append() or number() only if they belong to one fleet. Other nodes share no ledgers and no numbers, so
 * another node would give the same number again.
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
/** The service counts a request for more ids than this as bulk work, which it refuses first when it is busy. */
const BULK = 1024;
const TRANSIENT = [408, 429, 502, 503, 504];
const NOT_SENT = ["EAI_AGAIN", "ECONNREFUSED", "ENOTFOUND", "UND_ERR_CONNECT_TIMEOUT"];
const VISIBLE_ASCII = /^[!-~]+$/;
/** Only Node sends this header, because a browser may not send it to another origin without CORS permission. */
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
    /** True if the request may have taken effect although the call failed. */
    this.outcomeUnknown = outcomeUnknown;
  }
}

/** Returns true if the service cannot handle this request now, such as one for a certain series, but may handle others. */
function isOfRequest({ status, slug }) {
  return [409, 503, 504].includes(status) && ![undefined, "", "overloaded", "draining"].includes(slug);
}

function waitsForOperator(error) {
  return error.status !== 504 && isOfRequest(error) && error.retryAfterMs === 0;
}

/** Returns a copy of an error, because each call fails with its own error object. The copy's message includes `untrusted`. */
function again(error, outcomeUnknown, untrusted = error) {
  const message = untrusted === error ? error.message : `${error.message}; ${untrusted.message}`;
  return new IdmintError(error.code, message, { ...error, cause: error.cause, outcomeUnknown });
}

/** Ids of one format. */
export class Ids {
  #asking;
  #format;
  #query;
  /** Converts a number to a text. Undefined until the service has described the format, null if only the service can write texts. */
  #textOf;
  #learning = null;
  #timeoutMs;
  #numbers;
  #texts;

  /**
   * The options are those of idmint.d.mts. Throws a RangeError or a TypeError if an argument is invalid, and an IdmintError with the
   * code "refused" if the format has half of a surrogate pair. Sends no request.
   */
  constructor(urls, format, options = {}) {
    const { token, prefetchCount = 100, prefetchCountMax = 10_000, prefetchValidity = 60, timeout = 10, query = {} } = options;
    if (!(prefetchCount >= 1 && prefetchCount <= prefetchCountMax)) {
      throw new RangeError(`prefetchCount must be from 1 to prefetchCountMax (${prefetchCountMax}), got ${prefetchCount}`);
    }
    if (!(prefetchValidity > 0 && timeout > 0 && timeout <= 2_000_000)) {
      throw new RangeError("prefetchValidity and timeout must be seconds above 0, and timeout at most 2000000");
    }
    this.#asking = new Asking(typeof urls === "string" ? [urls] : urls, token, timeout * 1000);
    this.#format = segment(format);
    this.#query = query;
    this.#timeoutMs = timeout * 1000;
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
      return this.#learnAndNext(options?.signal);
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

  /** Mints ids now and returns their texts: all of them or none. A retry mints new ids, so no id is returned twice. */
  async mint(count, options) {
    return this.#asking.send({ method: "POST", target: this.#target(count), parse: textsOf(count) }, options?.signal);
  }

  /** Returns the response of GET /decode/{id}: the possible readings of a text. Fails with status 404 if the text is not an id. */
  async decode(text, options) {
    return this.#asking.send({ method: "GET", target: `/decode/${segment(text)}`, parse: objectOf }, options?.signal);
  }

  /** Appends events to a ledger and returns their ids. Calls with the same `key` (default: random) append only once. */
  async append(ledger, events, options) {
    const headers = { "idempotency-key": checkedKey(options?.key ?? (await randomKey())), "content-type": "application/json" };
    const target = `/ledgers/${segment(ledger)}/events`;
    const request = { method: "POST", target, headers, body: JSON.stringify({ events }), parse: textsOf(events.length) };
    return this.#asking.send(request, options?.signal);
  }

  /** Returns the next number of a series without gaps, in decimal digits, and its text. The same key always gets the same number. */
  async number(series, key, options) {
    const headers = { "idempotency-key": checkedKey(key) };
    const parse = ({ number, text }) => ({ number: String(decimal(number)), text: textOf(text) });
    const target = `/numbers/${segment(series)}`;
    return this.#asking.send({ method: "POST", target, headers, parse }, options?.signal);
  }

  /** Aborts the requests in flight. Prefetched ids that were not used are lost and remain gaps. */
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

  async #learnAndNext(signal) {
    const deadline = now() + this.#timeoutMs;
    this.#learning ??= this.#learn();
    await until(this.#learning, signal, deadline - now());
    return this.#textOf ? this.#textOf(await this.#numbers.next(signal, deadline)) : this.#texts.next(signal, deadline);
  }

  async #learn() {
    try {
      const parse = (format) => numberText(format, this.#query);
      this.#textOf = await this.#asking.send({ method: "GET", target: `/formats/${this.#format}`, parse });
    } catch (failure) {
      if (failure.code !== "refused") {
        throw failure;
      }
      // The token may permit minting but not reading formats. The next request for texts reports any other cause of the refusal.
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

/**
 * Encodes a text as one segment of a path. `fetch` and proxies remove the segments `.` and `..`, even if the dots are written as %2E, so
 * the dots are encoded twice. The service then responds that there is no such resource.
 */
function segment(text) {
  if (text === "." || text === "..") {
    return text.replaceAll(".", "%252E");
  }
  try {
    return encodeURIComponent(text);
  } catch {
    throw new IdmintError("refused", "the text has half of a surrogate pair, which cannot be sent");
  }
}

function checkedKey(key) {
  if (!VISIBLE_ASCII.test(key)) {
    throw new TypeError("a key must be one or more visible ASCII characters");
  }
  return key;
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

/** Returns a function that converts a number to a text, or null unless the text is plain decimal, hexadecimal or base 36. */
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
      // The pattern does not show the order of the alphabet, so compare the text of the example id.
      return textOf(decimal(format.example.value)) === format.example.encodings[encoding.name] ? textOf : null;
    }
  }
  return null;
}

/** A row of equally spaced ids, as numbers. */
class Row {
  taken = 0;
  expires = 0;
  /** True if taking the first id of this row starts a request for more ids. */
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

  /** Keeps the first `kept` ids in this row and returns the rest as a new row. */
  split(kept) {
    const rest = new Row(this.next + BigInt(kept) * this.step, this.step, this.count - kept);
    this.count = kept;
    return rest;
  }
}

/** The ids of one response, as texts. */
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

/** A stock of prefetched ids. Taking an id from the second half starts a request for more, but only one at a time. */
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

  next(signal, deadline) {
    return this.#takeIfFresh() ?? this.nextOfAnother(signal, deadline);
  }

  nextOfAnother(signal, deadline = now() + this.#timeoutMs) {
    const id = this.#advance();
    return id === undefined ? this.#waitForNext(signal, deadline) : id;
  }

  async #waitForNext(signal, deadline) {
    for (;;) {
      // Keep the error of the request that this caller waited for, because a later request may replace `#error`.
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

  /** Returns the first id of the next piece that has not expired, or undefined while a request for more ids is in flight. */
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
        // The ids expired before they were used, so fetch fewer from now on.
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

  /** Fetches ids. The promise never rejects: it resolves to the error, or to undefined. */
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

/** Splits one piece at the middle of all ids, and marks its second part as the second half. */
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

/** The pause of an address without failures. */
const FRESH = { failures: 0, notBefore: -Infinity, failure: undefined };

/** Sends requests to the addresses of the service, with failover. */
class Asking {
  #addresses;
  #headers = { ...AGENT };
  #token;
  #timeoutMs;
  /** The index of the address that responded last. The next request tries it first. */
  #first = 0;
  /** True if a call timed out and no address has responded since. */
  #isAway = false;
  #ended = new AbortController();

  constructor(urls, token, timeoutMs) {
    if (urls.length === 0) {
      throw new RangeError("urls must have at least one address");
    }
    this.#addresses = urls.map((url) => ({ url: addressOf(url), ...FRESH }));
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

  /** Sends a request to one address after another, until one responds or the timeout passes. The request must be safe to repeat. */
  async send(request, signal) {
    const deadline = now() + this.#timeoutMs;
    // If an address is too busy for this many ids, the next request asks for fewer.
    const isBusy = (error) => request.count > BULK && error.status === 503;
    // Pauses after errors that concern only this request. Other calls do not observe them.
    const own = new Map();
    for (let outcomeUnknown = false, untrusted; ; ) {
      let error;
      const first = this.#first;
      for (let place = 0; place < this.#addresses.length; place += 1) {
        const at = (first + place) % this.#addresses.length;
        const address = this.#addresses[at];
        let pause = own.get(address) ?? address;
        let { failure } = pause;
        if (!failure || now() >= pause.notBefore) {
          this.#throwIfEnded(signal, outcomeUnknown);
          try {
            const answer = await this.#attempt(address, request, signal, deadline);
            this.#first = at;
            this.#isAway = false;
            Object.assign(address, FRESH);
            return answer;
          } catch (raised) {
            failure = raised;
            outcomeUnknown ||= failure.outcomeUnknown;
          }
          this.#throwIfEnded(signal, outcomeUnknown);
          // A refusal without a status means that the certificate is not trusted. Another address may have a valid one.
          if (failure.code === "refused" && failure.status !== undefined) {
            Object.assign(address, FRESH);
            throw again(failure, outcomeUnknown);
          }
          if (isOfRequest(failure)) {
            Object.assign(address, FRESH);
            this.#isAway = false;
            pause = own.get(address) ?? { ...FRESH };
            own.set(address, pause);
          } else {
            own.delete(address);
            pause = address;
          }
          pause.failure = failure;
          pause.failures += 1;
          pause.notBefore = now() + Math.max(failure.retryAfterMs, backoff(pause.failures));
        }
        untrusted = failure.code === "refused" ? failure : untrusted;
        // Prefer an error that may pass. Prefer a response about this request to an error without a slug, such as one of a proxy.
        const isBetter = isBusy(failure) || (isOfRequest(failure) && !error?.slug);
        if (!error || error.code !== "unavailable" || (isBetter && !isBusy(error))) {
          error = failure;
        }
      }
      const wait = Math.max(0, Math.min(...this.#addresses.map((address) => (own.get(address) ?? address).notBefore)) - now());
      const isLate = now() + wait > deadline;
      if (this.#isAway || isLate || error.code !== "unavailable" || isBusy(error) || waitsForOperator(error)) {
        // From now on, calls fail without retries until an address responds.
        this.#isAway ||= isLate && !isOfRequest(error);
        throw again(error, outcomeUnknown, untrusted);
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
    // Each attempt gets a share of the timeout. During it, no other call sends a request to an address that has failed.
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
      // Copy only the message and the code, because the error of Node contains the response, which may repeat the token.
      const cause = Object.assign(new Error(this.#withoutToken(String(why))), { code });
      if (/CERT|ISSUER|LEAF_SIGNATURE/.test(code)) {
        throw new IdmintError("refused", `${message}; set NODE_EXTRA_CA_CERTS to the certificate of its authority`, { cause });
      }
      throw new IdmintError("unavailable", message, { cause, outcomeUnknown: !NOT_SENT.includes(code) });
    } finally {
      clearTimeout(timer);
      signals.forEach((one) => one.removeEventListener("abort", end));
    }
    if (!response.ok) {
      throw refusal(address.url, response, text, this.#token);
    }
    try {
      return parse(JSON.parse(text));
    } catch (failure) {
      // A SyntaxError quotes the body, which may repeat the token.
      const cause = failure instanceof SyntaxError ? new SyntaxError("the response is not JSON") : failure;
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

/** Validates an address. No error message contains its user name or password. */
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
      // The JSON may contain the token with escapes, so search the text that this program writes.
      problem = JSON.parse(JSON.stringify(problem).replaceAll(JSON.stringify(token).slice(1, -1), "(token)"));
    }
  } catch {
    // The response comes from another program, such as a proxy.
    problem = {};
  }
  const { status } = response;
  // A browser hides the status of a redirect.
  const redirects = response.type === "opaqueredirect" || (status >= 300 && status < 400);
  const said = (member) => (typeof problem[member] === "string" ? problem[member] : "");
  const remedy = REMEDIES[status] ?? (said("example") && `this works: ${said("example")}`);
  const detail = said("detail") || (redirects ? "it redirects, which is not followed" : "no reason is given");
  const message = `${url} answers ${status}: ${detail.slice(0, 1000)}`;
  const wait = typeof problem.retry_after_ms === "number" ? problem.retry_after_ms : Number(response.headers.get("retry-after")) * 1000;
  const retryAfterMs = wait > 0 ? Math.min(wait, RETRY_AFTER_MAX_MS) : 0;
  const details = { status, problem, retryAfterMs, outcomeUnknown: status >= 500 && status !== 503 };
  const mayPass = TRANSIENT.includes(status) || (status === 409 && said("type").endsWith("/ledger-importing"));
  return new IdmintError(mayPass ? "unavailable" : "refused", remedy ? `${message}; ${remedy}` : message, details);
}

function closed(outcomeUnknown = false) {
  return new IdmintError("closed", "this Ids is closed; create another one", { outcomeUnknown });
}

/** Waits for a promise, and rejects if the signal is aborted or `ms` milliseconds have passed. */
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

/** Returns a pause in milliseconds that doubles with each failure, with jitter. */
function backoff(failures) {
  return failures ? Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** (failures - 1)) * (0.5 + Math.random() / 2) : 0;
}

function now() {
  return performance.now();
}

/** Returns 128 random bits in hexadecimal. Node 18 has no global `crypto`, and pages without TLS have no `randomUUID`. */
async function randomKey() {
  const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
