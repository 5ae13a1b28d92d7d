// Mints ids with concurrent tasks. ../mod.rs describes the arguments, the input and the output.

import assert from "node:assert";
import { createInterface } from "node:readline";

const [client, urls, format, threads, count, validity] = process.argv.slice(2);
const { Ids } = await import(client);
const ids = new Ids(urls.split(","), format, { prefetchValidity: Number(validity), timeout: 120 });

for await (const _ of createInterface({ input: process.stdin })) {
  const records = Buffer.alloc(16 * count);
  const mint = async (thread) => {
    const end = Math.floor((count * (thread + 1)) / threads);
    for (let at = Math.floor((count * thread) / threads); at < end; at += 1) {
      const asked = BigInt(Date.now());
      records.writeBigUInt64BE(await ids.nextBigInt(), 16 * at);
      records.writeBigUInt64BE(asked, 16 * at + 8);
    }
  };
  await Promise.all(Array.from({ length: Number(threads) }, (_, thread) => mint(thread)));
  await new Promise((resolve) => process.stdout.write(records, resolve));
}
await ids.close();
await assert.rejects(async () => ids.next(), /closed/);
