// SPDX-License-Identifier: Apache-2.0
/** Type declarations of idmint.mjs. */

/** The version of this client. */
export const version: string;

export interface Options {
  /** The bearer token of each request. White space around it is removed. Default: none. */
  token?: string;
  /** The initial number of ids per request, which grows with the rate of use up to prefetchCountMax. Default: 100. */
  prefetchCount?: number;
  /** The maximum to which the number of ids per request grows. Default: 10 000. */
  prefetchCountMax?: number;
  /** The maximum age of an id in seconds, counted from its request. The stock lasts at most this long in an outage. Default: 60. */
  prefetchValidity?: number;
  /** The time limit of a call in seconds. Default: 10. */
  timeout?: number;
  /** Query parameters that the format needs, such as `{ type: "message" }`. Default: none. */
  query?: Record<string, string>;
}

export interface CallOptions {
  /** Aborts the call, which then fails with the reason of the signal. */
  signal?: AbortSignal;
}

export interface AppendOptions extends CallOptions {
  /** The idempotency key. Calls with the same key append once, so a call with an unknown outcome can be repeated. Default: random. */
  key?: string;
}

export interface SeriesNumber {
  /** The number in decimal digits. */
  number: string;
  text: string;
}

/** The error of a call. */
export class IdmintError extends Error {
  /**
   * "refused": the service would refuse the request again, or failed with status 500. "unavailable": the same call may succeed later.
   * "bad-response": the response does not come from an idmint service. "closed": the Ids is closed.
   */
  readonly code: "refused" | "unavailable" | "bad-response" | "closed";
  /** The status of the response, or undefined if there was none. */
  readonly status: number | undefined;
  /** The name of the problem type, as in /problems/{slug}, or undefined if there was no problem document. */
  readonly slug: string | undefined;
  readonly reason: string | undefined;
  readonly problem: Readonly<Record<string, unknown>>;
  /** The wait in milliseconds that the service asks for before a retry: at most 30 000, and 0 if it names none. */
  readonly retryAfterMs: number;
  /** True if the request may have taken effect although the call failed. */
  readonly outcomeUnknown: boolean;
}

/** Ids of one format. */
export class Ids {
  constructor(urls: string | readonly string[], format: string, options?: Options);
  /** Returns the next id as a string, or a promise of one while the stock is empty. */
  next(options?: CallOptions): string | Promise<string>;
  /** Returns the next id as a bigint, or a promise of one while the stock is empty. Only for formats that have numbers. */
  nextBigInt(options?: CallOptions): bigint | Promise<bigint>;
  mint(count: number, options?: CallOptions): Promise<string[]>;
  decode(text: string, options?: CallOptions): Promise<Record<string, unknown>>;
  append(ledger: string, events: readonly object[], options?: AppendOptions): Promise<string[]>;
  number(series: string, key: string, options?: CallOptions): Promise<SeriesNumber>;
  close(): Promise<void>;
}
