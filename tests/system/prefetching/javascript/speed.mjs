// Prints nanoseconds of next(), of uuid4 and of a counter: the median of 21 runs of one thread.

import { randomUUID } from "node:crypto";

const [client, url] = process.argv.slice(2);
const { Ids } = await import(client);
const [calls, runs] = [20_000, 21];
const ids = new Ids(url, "snowflake", { prefetchCount: 100_000, prefetchCountMax: 100_000 });
let [counter, last] = [0n, 0n];

/** `fill`: what there must be before each run. */
async function nanos(call, fill = () => {}) {
  const times = [];
  // The first runs are for the compiler.
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

/** Enough for a run. */
async function fill() {
  while (typeof ids.next() !== "string") {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

console.log(await nanos(() => ids.next(), fill), await nanos(() => randomUUID()), await nanos(() => (counter += 1n)));
await ids.close();
