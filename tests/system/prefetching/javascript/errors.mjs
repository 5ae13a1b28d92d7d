// Checks that errors name the remedy, that no id is older than its validity, and that a repeated append is applied only once.

import assert from "node:assert";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { pipeline } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

const [client, port, token, reader, securedPort, caFile, genesis, minter] = process.argv.slice(2);
const { Ids, IdmintError } = await import(client);
const plain = `http://127.0.0.1:${port}`;
const secured = `https://127.0.0.1:${securedPort}`;
assert.equal(process.env.NODE_EXTRA_CA_CERTS, caFile);

async function refuse(status, words, url, format, options) {
  const ids = new Ids(url, format, { timeout: 60, ...options });
  for (const take of [() => ids.next(), () => ids.nextBigInt()]) {
    await assert.rejects(async () => take(), (error) => {
      assert(error instanceof IdmintError && error.status === status, `${status}: ${error.status} ${error.stack}`);
      words.forEach((word) => assert(error.message.includes(word), `${word} is not in ${error.message}`));
      return true;
    });
  }
  await ids.close();
}

await refuse(401, ["set token", "http.tokens"], plain, "snowflake", {});
await refuse(403, ["http.tokens"], plain, "snowflake", { token: reader });
await refuse(404, ["invoice"], plain, "invoice", { token });
await refuse(422, ["this works: POST /ids/siq?type="], plain, "siq", { token });
await refuse(undefined, ["http://127.0.0.1:1"], "http://127.0.0.1:1", "snowflake", { timeout: 5 });

const uuids = new Ids(plain, "uuid7", { token });
await assert.rejects(async () => uuids.nextBigInt(), (error) => error.status === 406 && error.reason === "rows" && error.code === "refused");
assert.equal((await uuids.next()).length, 36);
await uuids.close();

const trusting = new Ids(["127.0.0.1:1", secured], "snowflake", { timeout: 60 });
const seen = new Set();
for (let i = 0; i < 1000; i += 1) {
  seen.add(await trusting.next());
}
assert.equal(seen.size, 1000);
assert.throws(() => structuredClone(trusting).next(), TypeError);
assert.throws(() => JSON.stringify(trusting), /make another Ids/);
await trusting.close();

// The certificate is not valid for the name 127.0.0.2. If the certificate of an address is not trusted, the client uses another
// address. Without another one, the call ends at once.
const proxy = createTcpServer((socket) => pipeline(socket, connect(securedPort, "127.0.0.1"), socket, () => {}));
await new Promise((resolve) => proxy.listen(0, "127.0.0.2", resolve));
const untrusted = `https://127.0.0.2:${proxy.address().port}`;
const either = new Ids([untrusted, plain], "snowflake", { token, timeout: 86_400 });
const alone = new Ids(untrusted, "snowflake", { timeout: 86_400 });
for (let i = 0; i < 3; i += 1) {
  assert.equal((await either.mint(1)).length, 1);
  await assert.rejects(alone.mint(1), { code: "refused", status: undefined });
}
await Promise.all([either.close(), alone.close()]);
proxy.close();

const unixMs = (id) => Number(BigInt(id) >> 22n) + 1_420_070_400_000;
const old = new Ids(plain, "snowflake", { token, prefetchValidity: 0.3, timeout: 60 });
const first = await old.next();
await sleep(400);
const asked = Date.now();
const second = await old.next();
assert(unixMs(first) < asked - 300 && unixMs(second) > asked - 300, `${first} ${second} at ${asked}`);
await old.close();

const most = new Ids(plain, "payment", { token, prefetchCount: 90_000, prefetchCountMax: 90_000 });
assert((await most.nextBigInt()) < (await most.nextBigInt()));
await most.close();
const siq = new Ids(plain, "siq", { token, query: { type: "message" } });
assert((await siq.nextBigInt()) > 1n << 64n);
await siq.close();

// Texts that the client makes from numbers, and texts of the service, must have the same form.
for (const [format, query, form] of [
  ["snowflake", {}, /^[1-9][0-9]{17,18}$/],
  ["snowflake", { encoding: "hex" }, /^[1-9a-f][0-9a-f]{15}$/],
  ["snowflake", { encoding: "hex_padded" }, /^[0-9a-f]{16}$/],
  ["snowflake", { encoding: "base64" }, /^.{12}$/],
  ["payment", {}, /^[0-9A-Z]{9}$/],
  ["siq", { type: "message" }, /^00[0-9a-f]{26}$/],
  ["uuid7", { encoding: "hex_padded" }, /^[0-9a-f]{32}$/],
]) {
  for (const allowed of [token, minter]) {
    const ids = new Ids(plain, format, { token: allowed, query, timeout: 60 });
    const texts = [await ids.next(), await ids.next()];
    texts.forEach((text) => assert.match(text, form));
    assert.notEqual(texts[0], texts[1]);
    if (allowed === token) {
      const { matches } = await ids.decode(texts[0]);
      assert(matches.some((match) => match.format === format), `${texts[0]} is no ${format}`);
    }
    await ids.close();
  }
}

const authorization = `Bearer ${token}`;
const headers = { authorization, "content-type": "application/json" };
const created = await fetch(`${plain}/ledgers`, { method: "POST", headers, body: readFileSync(genesis) });
const { ledger } = await created.json();
let lost = 0;
const losing = createServer(async (request, answer) => {
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  const { "content-length": _, connection, host, ...passed } = request.headers;
  const body = parts.length > 0 ? Buffer.concat(parts) : undefined;
  const answered = await fetch(plain + request.url, { method: request.method, headers: passed, body });
  const text = await answered.text();
  lost += 1;
  if (lost <= 2) {
    answer.socket.destroy();
  } else {
    answer.writeHead(answered.status).end(text);
  }
});
await new Promise((resolve) => losing.listen(0, "127.0.0.1", resolve));
const ids = new Ids(`http://127.0.0.1:${losing.address().port}`, "snowflake", { token, timeout: 60 });
const event = { event: "Paid", entities: {} };
const [appended] = await ids.append(ledger, [event]);
assert.equal(lost, 3);
const [again] = await ids.append(ledger, [event]);
assert.notEqual(again, appended);
const keyed = await ids.append(ledger, [event], { key: "order-1" });
assert.deepEqual(await ids.append(ledger, [event], { key: "order-1" }), keyed);
assert.notEqual(keyed[0], again);
await assert.rejects(ids.append(ledger, [event], { key: "two words" }), TypeError);
for (const [key, number] of [["order-1", "1"], ["order-1", "1"], ["order-2", "2"]]) {
  assert.deepEqual(await ids.number("javascript", key), { number, text: number });
}
const chain = await (await fetch(`${plain}/ledgers/${ledger}/ids`, { headers: { authorization } })).json();
assert.deepEqual(chain.ids.slice(-2).map((id) => id.id ?? id), [again, ...keyed]);
const texts = await ids.mint(1000);
assert.equal(new Set(texts).size, 1000);
assert.equal((await ids.decode(texts[0])).id, texts[0]);
await assert.rejects(ids.decode("no id at all"), { status: 404, slug: "no-format-matches" });
// The client escapes dots, so that they stay a segment of the path, and does not send half of a surrogate pair.
for (const dots of [".", ".."]) {
  await assert.rejects(ids.decode(dots), { status: 404, code: "refused" });
  await assert.rejects(ids.number(dots, "order-1"), { status: 422, code: "refused" });
}
await assert.rejects(ids.decode("\ud800"), { code: "refused", outcomeUnknown: false });
assert.equal((await ids.mint(1)).length, 1);
await ids.close();
losing.close();
losing.closeAllConnections();

/** Starts a service that responds to each request with `[status, body]` of `answer`, and returns its URL. */
const stubs = [];
async function stub(answer) {
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) {
      parts.push(part);
    }
    const [status, body] = answer(request, Buffer.concat(parts).toString());
    response.writeHead(status).end(JSON.stringify(body));
  });
  stubs.push(server);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

// After a 503 for one kind of request, the client still sends other requests to the same address.
const asked503 = [];
const partlyUrl = await stub(({ url }) => {
  asked503.push(url);
  if (url.startsWith("/numbers/")) {
    return [503, { type: "/problems/numbers-held" }];
  }
  if (url === "/ledgers/importing/events") {
    return [409, { type: "/problems/ledger-importing" }];
  }
  if (url === "/ledgers/slow/events" && asked503.length === 1) {
    return [408, {}];
  }
  return url.startsWith("/ledgers/aa") ? [503, { type: "/problems/clock-behind", retry_after_ms: 20_000 }] : [200, { ids: ["1"] }];
});
const partly = new Ids(partlyUrl, "snowflake");
assert.deepEqual(await partly.append("slow", [{}]), ["1"]);
assert.equal(asked503.length, 2);
for (const [act, slug] of [
  [() => partly.number("acme-2026", "order-1"), "numbers-held"],
  [() => partly.append("aa77f99c", [{}]), "clock-behind"],
  [() => partly.append("importing", [{}]), "ledger-importing"],
]) {
  await assert.rejects(act, { slug, code: "unavailable" });
  assert.deepEqual(await partly.mint(1), ["1"]);
}
// The client retries none of the three requests. A held series and an import wait for an operator,
// and the other response asks for a wait that is longer than the timeout.
assert.equal(asked503.length, 8);
await partly.close();
// One address is down, and the other one refuses this request with a 503. The client must report
// the 503, and must use that address for the next call.
const partlyDown = new Ids(["http://127.0.0.1:1", partlyUrl], "snowflake", { timeout: 60 });
await assert.rejects(partlyDown.number("acme-2026", "order-1"), { status: 503, slug: "numbers-held" });
assert.equal(asked503.length, 9);
assert.deepEqual(await partlyDown.mint(1), ["1"]);
await partlyDown.close();

// The timeout of 1 s covers a whole call. The service takes 0.45 s to describe the format and 0.45
// s for each id. The slower of two concurrent calls needs 1.35 s, so it must fail.
const slow = createServer((request, answer) => {
  const isMint = request.method === "POST";
  setTimeout(() => answer.writeHead(isMint ? 200 : 404).end(isMint ? '{"ids":["1"]}' : "{}"), 450);
});
stubs.push(slow);
await new Promise((resolve) => slow.listen(0, "127.0.0.1", resolve));
const hurried = new Ids(`http://127.0.0.1:${slow.address().port}`, "snowflake", { timeout: 1, prefetchCount: 1, prefetchCountMax: 1 });
const both = await Promise.allSettled([hurried.next(), hurried.next()]);
assert(both.some(({ reason }) => reason?.code === "unavailable"), "both ids came within 1 s");
await hurried.close();

// In a successful response, the client does not redact text that is equal to its token.
const invoices = new Ids(await stub(() => [200, { number: "1", text: "INV-acme-00001" }]), "snowflake", { token: "acme" });
assert.deepEqual(await invoices.number("acme-2026", "order-1"), { number: "1", text: "INV-acme-00001" });
await invoices.close();
for (const wrong of [{ prefetchCount: 0 }, { prefetchCount: 20_000 }, { prefetchValidity: 0 }]) {
  assert.throws(() => new Ids(plain, "snowflake", wrong), RangeError);
}
assert.throws(() => new Ids([], "snowflake"), RangeError);
assert.throws(() => new Ids("ftp://x", "snowflake"), RangeError);
for (const url of ["http://user:hunter2@x", "ftp://user:hunter2@x:port"]) {
  assert.throws(() => new Ids(url, "snowflake"), (error) => error instanceof RangeError && !error.stack.includes("hunter2"));
}
for (const wrong of [" \n", "hunter2\r\nx: y", "hunter2\u00e9"]) {
  assert.throws(() => new Ids(plain, "snowflake", { token: wrong }), (error) => error instanceof TypeError && !error.stack.includes("hunter2"));
}
const trimmed = new Ids(plain, "snowflake", { token: ` ${token}\n`, timeout: 60 });
assert.equal(typeof JSON.parse(JSON.stringify({ id: await trimmed.next() })).id, "string");

// An aborted call fails immediately with the reason of the abort.
const silent = createServer(() => {});
await new Promise((resolve) => silent.listen(0, "127.0.0.1", resolve));
const waiting = new Ids(`http://127.0.0.1:${silent.address().port}`, "snowflake", { timeout: 600 });
for (const call of [(signal) => waiting.next({ signal }), (signal) => waiting.nextBigInt({ signal }), (signal) => waiting.mint(1, { signal })]) {
  const aborting = new AbortController();
  const called = call(aborting.signal);
  aborting.abort(new Error("enough"));
  await assert.rejects(called, /enough/);
}
await waiting.close();
silent.close();
silent.closeAllConnections();
await trimmed.close();
for (const server of stubs) {
  server.close();
  server.closeAllConnections();
}
console.log("done");
