/** Types of idmint.mjs. */

export interface Options {
  token?: string;
  /** How many ids are asked for at once; 100. Grows with the rate of use. */
  prefetchCount?: number;
  /** Up to so many; 10 000. */
  prefetchCountMax?: number;
  /** Seconds for which an id may be handed out after it was asked for; 60. */
  prefetchValidity?: number;
  /** Seconds after which a call gives up; 10. */
  timeout?: number;
  /** What else the format needs, as `{ type: "message" }`. */
  query?: Record<string, string>;
}

export class IdmintError extends Error {
  /** What the service answered; undefined if none did. */
  readonly status?: number;
  /** The kind, as in /problems/{slug}. */
  readonly slug?: string;
  readonly reason?: string;
  readonly problem: Record<string, unknown>;
  readonly retryAfterMs: number;
  /** Whether the same request may work later. */
  get isTransient(): boolean;
}

export class Ids {
  constructor(urls: string | string[], format: string, options?: Options);
  next(): bigint | Promise<bigint>;
  nextText(): string | Promise<string>;
  mint(count: number): Promise<string[]>;
  decode(text: string): Promise<Record<string, any>>;
  append(ledger: string, events: object[]): Promise<string[]>;
  number(series: string, key: string): Promise<{ number: bigint; text: string }>;
  close(): Promise<void>;
}
