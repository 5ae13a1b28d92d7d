// Calls a server that misbehaves: see hostile/mod.rs.

import assert from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

const [client, token, ...cases] = process.argv.slice(2);
const { Ids, IdmintError } = await import(client);

async function call(url, name, kind, seconds, act) {
  const prefetchCount = name === "bulk" ? 10_000 : 100;
  const ids = new Ids(url, "snowflake", { token: `${token}\n`, timeout: seconds ? 0.5 : 3, prefetchCount });
  const until = Date.now() + seconds * 1000;
  const [seen, messages] = [[], new Set()];
  let [longest, failure] = [0, undefined];
  for (;;) {
    const begun = Date.now();
    try {
      seen.push(await act(ids));
    } catch (error) {
      assert(error instanceof IdmintError, error);
      failure = error;
      messages.add(inspect(error));
    }
    longest = Math.max(longest, Date.now() - begun);
    if (Date.now() >= until) {
      break;
    }
    await sleep(10);
  }
  await ids.close();
  const message = [...messages, inspect(ids)].join(" ").replace(/\s+/g, " ");
  const { code = "", outcomeUnknown = false, retryAfterMs = 0 } = failure ?? {};
  console.log([name, kind, code, outcomeUnknown, retryAfterMs, longest, seen.length, new Set(seen).size, message].join("\t"));
}

await Promise.all(cases.map(async (one) => {
  const at = one.indexOf("=");
  const [name, url] = [one.slice(0, at), one.slice(at + 1)];
  await call(url, name, "next", 10, (ids) => ids.next());
  await call(url, name, "append", 0, (ids) => ids.append("aa77f99c", [{ event: "Paid", entities: {} }]));
}));
