// Compiles with the types of the client alone.
import { IdmintError, Ids, type Options } from "./idmint.mjs";

const options: Options = { token: "t", prefetchCount: 10, query: { type: "message" } };
const ids = new Ids(["http://127.0.0.1:8080"], "siq", options);
export async function all(): Promise<[bigint, string, string[], string | undefined]> {
  try {
    return [await ids.next(), await ids.nextText(), await ids.mint(3), (await ids.decode("1"))["id"]];
  } catch (error) {
    throw error instanceof IdmintError && error.isTransient ? error.retryAfterMs : error;
  } finally {
    await ids.append("aa77f99c", [{ event: "Paid", entities: {} }]);
    await ids.close();
  }
}
