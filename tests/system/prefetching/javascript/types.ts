// Must compile with the type declarations of the client and no others.
import { IdmintError, Ids, version, type Options, type SeriesNumber } from "./idmint.mjs";

const options: Options = { token: "t", prefetchCount: 10, query: { type: "message" } };
const ids = new Ids(["http://127.0.0.1:8080"], "siq", options);
const { signal } = new AbortController();
export async function all(): Promise<[string, bigint, string[], unknown]> {
  try {
    return [await ids.next({ signal }), await ids.nextBigInt(), await ids.mint(3, { signal }), (await ids.decode("1"))["id"]];
  } catch (error) {
    throw error instanceof IdmintError && error.code === "unavailable" && !error.outcomeUnknown ? error.retryAfterMs : error;
  } finally {
    await ids.append("aa77f99c", [{ event: "Paid", entities: {} }], { signal, key: "order-1" });
    const { number, text }: SeriesNumber = await ids.number(version, "order-1");
    console.log(JSON.stringify({ number, text }));
    await ids.close();
  }
}
