// SPDX-License-Identifier: Apache-2.0
/** Types of idmint.mjs. */

/** The version of this client. */
export const version: string;

export interface Options {
  /** Sent with each request. White space around it is removed. */
  token?: string;
  /** Ids per request; 100. It grows with the rate of use, up to prefetchCountMax. */
  prefetchCount?: number;
  /** The bound of that growth; 10 000. */
  prefetchCountMax?: number;
  /** The maximum age of an id in seconds, counted from its request, so the longest outage that is bridged; 60. */
  prefetchValidity?: number;
  /** Seconds after which a call fails; 10. */
  timeout?: number;
  /** Parameters that the format needs, such as `{ type: "message" }`. */
  query?: Record<string, string>;
}

export interface CallOptions {
  /** Ends the call, which then fails with the reason of the signal. */
  signal?: AbortSignal;
}

export interface SeriesNumber {
  /** In decimal digits. */
  number: string;
  text: string;
}

/** The error of a call. */
export class IdmintError extends Error {
  /** Whether the service would refuse again, may answer later, is no idmint service, or the Ids is closed. */
  readonly code: "refused" | "unavailable" | "bad-response" | "closed";
  /** The status of the response; undefined if there was none. */
  readonly status: number | undefined;
  /** The problem, as in /problems/{slug}. */
  readonly slug: string | undefined;
  readonly reason: string | undefined;
  readonly problem: Readonly<Record<string, unknown>>;
  /** The wait that the service asks for, at most half a minute. */
  readonly retryAfterMs: number;
  /** Whether the service may have done what was asked although the call failed. */
  readonly outcomeUnknown: boolean;
}

/** Ids of one format. */
export class Ids {
  constructor(urls: string | readonly string[], format: string, options?: Options);
  /** The next id, at once from the stock, else a promise. */
  next(options?: CallOptions): string | Promise<string>;
  /** The same as a bigint, for formats that have numbers. */
  nextBigInt(options?: CallOptions): bigint | Promise<bigint>;
  mint(count: number, options?: CallOptions): Promise<string[]>;
  decode(text: string, options?: CallOptions): Promise<Record<string, unknown>>;
  append(ledger: string, events: readonly object[], options?: CallOptions): Promise<string[]>;
  number(series: string, key: string, options?: CallOptions): Promise<SeriesNumber>;
  close(): Promise<void>;
}
