/**
 * Ids from an idmint service: failover, and a stock of ids, so that most cost no round trip.
 *
 * Copy this file, and idmint.d.ts for TypeScript. It needs Node 18 or a browser, and nothing else:
 *
 *     import { Ids } from "./idmint.mjs";
 *     const ids = new Ids(["http://10.0.0.1:8080", "http://10.0.0.2:8080"], "snowflake", { token: "…" });
 *     await ids.next();                // a bigint; from the stock it is here at once, and needs no await
 *     await ids.nextText();            // the same as a text, for formats of any kind
 *     await ids.mint(1000);            // and decode("1573542478315782144"), append("aa77f99c", [{ event: "Paid", entities: {} }])
 *     await ids.number("acme-2026", "order-4711"); // the next of a series without gaps, always the same for an order
 *     await ids.close();               // an IdmintError with a status says what to mend; one that isTransient passes
 *
 * One object for a process or page: JavaScript cannot fork without exec, and a clone has no stock. Where a machine or container is
 * copied while it runs (a snapshot that is restored twice), make the object after the copy: nothing tells that it was copied.
 * In Node, NODE_EXTRA_CA_CERTS names the file of an authority to trust with https.
 */

const PAUSE_MIN_MS = 100;
const PAUSE_MAX_MS = 5_000;
const TRANSIENT = [429, 502, 503, 504];

/** What the service cannot know: where the mistake is mended. */
const REMEDIES = {
  401: "set token to one that http.tokens of the service has",
  403: "the token, or the origin of this page, does not cover this: see http.tokens and http.cors_origins of the service",
  421: "ask by a name that the service answers for, or add this one to its http.hosts",
};

/** No answer. `status`, `slug` (of /problems/{slug}) and `reason` are undefined where no service answered. */
export class IdmintError extends Error {
  constructor(message, { status, problem = {}, retryAfterMs = 0, cause } = {}) {
    super(message, { cause });
    this.name = "IdmintError";
    this.status = status;
    this.problem = problem;
    this.slug = problem.type?.split("/").pop();
    this.reason = problem.reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same request may work later. */
  get isTransient() {
    return this.status === undefined ? this.cause !== undefined : TRANSIENT.includes(this.status);
  }
}

/** Ids of one format. */
export class Ids {
  #asking;
  #format;
  #query;
  /** What makes a text of a number; undefined until that is known, null if only the service does. */
  #textOf;
  #learning = null;
  #numbers;
  #texts;

  /**
   * prefetchCount: how many ids are asked for at once; grows with the rate of use up to prefetchCountMax.
   * prefetchValidity: seconds for which an id may be handed out after it was asked for, so the longest outage that is bridged.
   * timeout: seconds after which a call gives up. query: what else the format needs, as { type: "message" }.
   */
  constructor(urls, format, options = {}) {
    const { token, prefetchCount = 100, prefetchCountMax = 10_000, prefetchValidity = 60, timeout = 10, query = {} } = options;
    if (!(prefetchCount >= 1 && prefetchCount <= prefetchCountMax)) {
      throw new RangeError(`prefetchCount is ${prefetchCount}, it must be from 1 to prefetchCountMax (${prefetchCountMax})`);
    }
    if (!(prefetchValidity > 0 && timeout > 0)) {
      throw new RangeError("prefetchValidity and timeout are seconds above 0");
    }
    this.#asking = new Asking(typeof urls === "string" ? [urls] : urls, token, timeout * 1000);
    this.#format = encodeURIComponent(format);
    this.#query = query;
    const sizes = [prefetchCount, prefetchCountMax, prefetchValidity * 1000];
    this.#numbers = new Stock((count) => this.#fetchRows(count), ...sizes);
    this.#texts = new Stock((count) => this.#fetchTexts(count), ...sizes);
  }

  /** The next id as a bigint, or the promise of one where there is none here. */
  next() {
    const numbers = this.#numbers;
    const piece = numbers.piece;
    if (piece.taken < piece.count && now() < piece.expires) {
      piece.taken += 1;
      const id = piece.next;
      piece.next = id + piece.step;
      return id;
    }
    return numbers.nextOfAnother();
  }

  /** The next id as a text, or the promise of one where there is none here. */
  nextText() {
    const textOf = this.#textOf;
    if (textOf) {
      const id = this.next();
      return typeof id === "bigint" ? textOf(id) : id.then(textOf);
    }
    if (textOf === undefined) {
      this.#learning ??= this.#learn();
      return this.#learning.then(() => this.nextText());
    }
    const piece = this.#texts.piece;
    if (piece.taken < piece.count && now() < piece.expires) {
      return piece.take();
    }
    return this.#texts.nextOfAnother();
  }

  /** So many ids as texts, minted now: all of them or none. A retry mints others, so no id comes twice. */
  async mint(count) {
    return (await this.#asking.json("POST", this.#target(count))).ids;
  }

  /** What the text can be: the answer of GET /decode/{id}. An IdmintError with status 404 if it is no id. */
  async decode(text) {
    return this.#asking.json("GET", `/decode/${encodeURIComponent(text)}`);
  }

  /** Appends to a ledger and gives the ids of the events. Done once, however often it must be sent. */
  async append(ledger, events) {
    const headers = { "idempotency-key": await randomKey(), "content-type": "application/json" };
    const body = JSON.stringify({ events });
    return (await this.#asking.json("POST", `/ledgers/${encodeURIComponent(ledger)}/events`, headers, body)).ids;
  }

  /** The next number of a series without gaps, and its text. The same key is given the same for ever. */
  async number(series, key) {
    const target = `/numbers/${encodeURIComponent(series)}`;
    const { number, text } = await this.#asking.json("POST", target, { "idempotency-key": key });
    return { number: BigInt(number), text };
  }

  /** Gives back what is open. Ids that were not handed out stay gaps. */
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
      this.#textOf = numberText(await this.#asking.json("GET", `/formats/${this.#format}`), this.#query);
    } catch (refused) {
      if (refused.isTransient || refused.status === undefined) {
        throw refused;
      }
      // Who may mint need not be allowed to read formats; what else is wrong the request for texts says.
      this.#textOf = null;
    } finally {
      this.#learning = null;
    }
  }

  async #fetchRows(count) {
    const answer = await this.#asking.json("POST", this.#target(count), { accept: "application/vnd.idmint.rows+json" });
    return answer.rows.map((row) => new Row(BigInt(row.first), BigInt(row.step), row.count));
  }

  async #fetchTexts(count) {
    return [new Texts(await this.mint(count))];
  }
}

/** What makes texts of the numbers of a format, where they are decimal, hex or base 36 and nothing more; else null. */
function numberText(format, query) {
  const encoding = format.encodings.find((some) => query.encoding === undefined || query.encoding === some.name);
  // Only of sequenced formats numbers are to be had.
  if (format.rule !== "sequenced" || !format.minted || encoding === undefined || "prefix" in query) {
    return null;
  }
  for (const [radix, span] of [[10, ""], [16, "a-f"], [16, "A-F"], [36, "a-z"], [36, "A-Z"]]) {
    const free = new RegExp(String.raw`^\^\(\?:0\|\[1-9${span}\]\[0-9${span}\]\{0,\d+\}\)\$$`);
    if (encoding.pattern === `^[0-9${span}]{${encoding.length}}$` || free.test(encoding.pattern)) {
      const length = encoding.length ?? 1;
      const lower = (number) => number.toString(radix).padStart(length, "0");
      const textOf = span < "A" || span > "a" ? lower : (number) => lower(number).toUpperCase();
      // An alphabet in another order has the same pattern.
      return textOf(BigInt(format.example.value)) === format.example.encodings[encoding.name] ? textOf : null;
    }
  }
  return null;
}

/** A row of numbers that is handed out. */
class Row {
  taken = 0;
  expires = 0;
  /** Whether more are to be fetched when it is begun. */
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

  /** Cuts it behind so many; the rest. */
  split(kept) {
    const rest = new Row(this.next + BigInt(kept) * this.step, this.step, this.count - kept);
    this.count = kept;
    return rest;
  }
}

/** Texts that are handed out. */
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

/** Ids that are here already: when the second half is begun, more are fetched, by one request at a time. */
class Stock {
  #fetch;
  #pieces = [];
  #count;
  #countMin;
  #countMax;
  #validityMs;
  #filledAt = -Infinity;
  #filling = null;
  #isClosed = false;
  piece = new Row(0n, 0n, 0);

  constructor(fetch, count, countMax, validityMs) {
    this.#fetch = fetch;
    this.#count = this.#countMin = count;
    this.#countMax = countMax;
    this.#validityMs = validityMs;
  }

  nextOfAnother() {
    const id = this.#advance();
    return id === undefined ? this.#waitForNext() : id;
  }

  async #waitForNext() {
    for (;;) {
      const error = await this.#filling;
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

  /** The first id of the next piece that is not too old; with the second half, or none, more are fetched. */
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
        // Fewer are used than are fetched.
        this.#count = Math.max(this.#countMin, this.#count >> 1);
      }
    }
    if (id === undefined && error) {
      throw error;
    }
    if ((id === undefined || this.piece.isSecondHalf) && this.#filling === null) {
      if (wasUsedUp && now() - this.#filledAt < 1000) {
        this.#count = Math.min(this.#countMax, this.#count * 2);
      }
      this.#filling = this.#fill();
    }
    return id;
  }

  /** Never rejects: what was wrong is what it gives. */
  async #fill() {
    let error;
    try {
      const askedAt = now();
      const pieces = halved(await this.#fetchAsManyAsThereAre());
      for (const piece of pieces) {
        piece.expires = askedAt + this.#validityMs;
      }
      if (!this.#isClosed) {
        this.#pieces.push(...pieces);
      }
    } catch (refused) {
      error = refused;
    }
    this.#filledAt = now();
    this.#filling = null;
    return error;
  }

  async #fetchAsManyAsThereAre() {
    try {
      return await this.#fetch(this.#count);
    } catch (refused) {
      const most = Number(refused.problem?.limit);
      if (refused.status !== 422 || refused.reason !== "count" || !(most > 0 && most < this.#count)) {
        throw refused;
      }
      // So many are never had at once: from now on as many as are.
      this.#count = this.#countMax = most;
      this.#countMin = Math.min(this.#countMin, most);
      return this.#fetch(most);
    }
  }

  async close() {
    this.#isClosed = true;
    this.#pieces = [];
    this.piece = new Row(0n, 0n, 0);
    await this.#filling;
  }
}

/** Cuts pieces so that one begins in the middle of all ids. */
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

/** Requests to whichever address answers. */
class Asking {
  #addresses;
  #headers;
  #timeoutMs;
  /** Which answered last. */
  #first = 0;
  #ended = new AbortController();

  constructor(urls, token, timeoutMs) {
    if (urls.length === 0) {
      throw new RangeError("urls names no address");
    }
    this.#addresses = urls.map((given) => {
      const url = given.includes("://") ? given : `http://${given}`;
      if (!/^https?:\/\/[^/]/.test(url)) {
        throw new RangeError(`${JSON.stringify(given)} is no http or https address`);
      }
      return { url: url.replace(/\/+$/, ""), notBefore: -Infinity, refusal: undefined };
    });
    this.#headers = token ? { authorization: `Bearer ${token}` } : {};
    this.#timeoutMs = timeoutMs;
  }

  close() {
    this.#ended.abort();
  }

  /** The answer to a request that may be sent more than once. */
  async json(method, target, headers, body) {
    const deadline = now() + this.#timeoutMs;
    for (let pause = PAUSE_MIN_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
      let error;
      for (let place = 0; place < this.#addresses.length; place += 1) {
        const at = (this.#first + place) % this.#addresses.length;
        const address = this.#addresses[at];
        if (now() < address.notBefore) {
          error ??= address.refusal;
          continue;
        }
        if (this.#ended.signal.aborted) {
          throw closed();
        }
        try {
          const answer = await this.#ask(address, method, target, headers, body, deadline);
          this.#first = at;
          return answer;
        } catch (failure) {
          if (this.#ended.signal.aborted) {
            throw closed();
          }
          if (!failure.isTransient) {
            throw failure;
          }
          error = failure;
          address.notBefore = now() + failure.retryAfterMs;
          address.refusal = failure;
        }
      }
      const earliest = Math.min(...this.#addresses.map((address) => address.notBefore));
      const wait = Math.max(earliest - now(), pause * (0.5 + Math.random() / 2));
      if (now() + wait > deadline) {
        throw error;
      }
      await this.#sleep(wait);
    }
  }

  async #ask(address, method, target, headers, body, deadline) {
    // Each address gets its share of the time.
    const share = Math.max(50, Math.min(this.#timeoutMs / (this.#addresses.length + 1), deadline - now()));
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(new Error(`no answer within ${Math.round(share)} ms`)), share);
    const end = () => attempt.abort();
    this.#ended.signal.addEventListener("abort", end);
    let response, text;
    try {
      const all = { ...this.#headers, ...headers };
      response = await fetch(address.url + target, { method, headers: all, body, signal: attempt.signal, redirect: "error" });
      text = await response.text();
    } catch (failure) {
      const why = failure.cause?.message ?? failure.message;
      throw new IdmintError(`${address.url} does not answer: ${why}`, { cause: failure });
    } finally {
      clearTimeout(timer);
      this.#ended.signal.removeEventListener("abort", end);
    }
    if (!response.ok) {
      throw refusal(address.url, response, text);
    }
    try {
      return JSON.parse(text);
    } catch {
      throw new IdmintError(`what answers at ${address.url} is no idmint service`, { status: response.status });
    }
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#ended.signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#ended.signal.addEventListener("abort", end);
    });
  }
}

function refusal(url, response, text) {
  let problem = {};
  try {
    problem = JSON.parse(text) ?? {};
  } catch {
    // Something else answers, such as a proxy.
  }
  const { status } = response;
  const remedy = REMEDIES[status] ?? (problem.example && `this works: ${problem.example}`);
  const message = `${url} answers ${status}: ${problem.detail ?? "no reason is given"}`;
  const retryAfterMs = problem.retry_after_ms ?? (Number(response.headers.get("retry-after")) * 1000 || 0);
  return new IdmintError(remedy ? `${message}; ${remedy}` : message, { status, problem, retryAfterMs });
}

function closed() {
  return new IdmintError("this Ids is closed");
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
