// Prints how many nanoseconds next(), a version 4 UUID and a counter take: the median of 21 runs on one thread.

import { randomUUID } from "node:crypto";

const [client, url] = process.argv.slice(2);
const { Ids } = await import(client);
const [calls, runs] = [20_000, 21];
const ids = new Ids(url, "snowflake", { prefetchCount: 100_000, prefetchCountMax: 100_000 });
let [counter, last] = [0n, 0n];

/** Returns the median time of `call` in nanoseconds. Waits for `fill` before each run. */
async function nanos(call, fill = () => {}) {
  const times = [];
  // The runs below 0 warm up the JIT compiler, and run 0 overwrites their times.
  for (let run = -runs; run < runs; run += 1) {
    await fill();
    const begun = process.hrtime.bigint();
    for (let at = 0; at < calls; at += 1) {
      last = call();
    }
    times[Math.max(run, 0)] = Number(process.hrtime.bigint() - begun) / calls;
  }
  return times.sort((one, other) => one - other)[runs >> 1].toFixed(1);
}

/** Waits until the client has prefetched ids. Until then, next() returns a promise and not a string. */
async function fill() {
  while (typeof ids.next() !== "string") {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

console.log(await nanos(() => ids.next(), fill), await nanos(() => randomUUID()), await nanos(() => (counter += 1n)));
await ids.close();
