// Uses the client that OpenAPI Generator makes from openapi-3.0.yaml. Usage: client.js URL LEDGER
// CHAIN.

import * as ids from "./ids";

// The only parts of Node.js that this program uses. Declared here, so that its types need not be installed.
declare const process: { argv: string[]; exit(code: number): never };
declare function require(name: "fs"): { readFileSync(path: string): Uint8Array };

const [url, known, chain] = process.argv.slice(2);

function report(kind: "step" | "gap", name: string, ok: boolean, seen?: unknown): void {
    if (!ok) {
        console.log("failed:", name, seen);
        process.exit(1);
    }
    console.log(`${kind}: ${name}`);
}

const step = (name: string, ok: boolean, seen?: unknown) => report("step", name, ok, seen);
const gap = (name: string, ok: boolean, seen?: unknown) => report("gap", name, ok, seen);

async function use(): Promise<void> {
    const configuration = new ids.Configuration({ basePath: url });
    const minting = new ids.IdsApi(configuration);
    const ledgers = new ids.LedgersApi(configuration);
    const conjunctions = new ids.ConjunctionsApi(configuration);

    const one = await minting.mint({ format: "snowflake" });
    step("an id without a body", one.ids.length === 1, one);
    const three = await minting.mint({ format: "snowflake", mintRequest: { count: 3 } });
    step("ids with a body", three.ids.length === 3, three);
    const many = await minting.mint({ format: "payment", count: 1000 });
    step("a batch", many.count === 1000 && many.ids.length === 1000, many.count);
    const typed = await minting.mint({ format: "typeid", type: "user" });
    step("an id of a type", typed.ids.length === 1 && typed.ids[0].startsWith("user_"), typed);
    const read = await minting.decode({ id: one.ids[0], format: "snowflake" });
    step("a decode", read.matches[0].canonical === one.ids[0], read);
    const bulk = await minting.decodeMany({ requestBody: three.ids });
    step("decodes", bulk.every((reading) => reading.format === "snowflake"), bulk);
    const ledger = await ledgers.createLedger({ event: { event: "Opened", entities: {} }, idempotencyKey: "create" });
    step("a ledger", ledger.events === 1, ledger);
    const order = { events: [{ event: "Ordered", entities: { order: ["1"] } }] };
    const append = () => ledgers.appendRaw({ ledger: ledger.ledger, appendRequest: order, idempotencyKey: "append" });
    const [first, again] = [await append(), await append()];
    const [appended, replayed] = [await first.value(), await again.value()];
    step("an append", appended.ids.length === 1, appended);
    step("its replay", replayed.ids[0] === appended.ids[0], replayed);
    step("told apart by status", first.raw.status === 201 && again.raw.status === 200);
    const checked = await ledgers.verifyLedger({ ledger: known, body: new Blob([require("fs").readFileSync(chain)]) });
    step("a chain checked", checked.valid && checked.events > 1, checked);
    const report: ids.Report = { tca: "2024-02-01T00:00:00Z", primary: 25544, secondary: 48274 };
    const reports = await conjunctions.report({ report: [report] });
    step("a report", reports.ids[0] === "zwwqlzz-pjjmxmd-lkpvwq", reports);
    const later = { ...report, tca: "2024-02-01T01:00:00Z", cONJUNCTIONEVENTID: reports.ids[0] ?? undefined };
    const moved = await conjunctions.report({ report: [later], noted: "keep" });
    step("a report that moved by an hour", moved.details[0].tcaDeltaUs === 3_600_000_000, moved);
    const wrong = { ...report, secondary: report.primary };
    const some = await conjunctions.report({ report: [wrong, report], partial: true });
    step("reports, one of them wrong", some.ids[0] === null && some.details[0].problem?.status === 422, some);
    const refusal = await minting.mint({ format: "siq", type: "unknown" }).catch((error: unknown) => error);
    const response = refusal instanceof ids.ResponseError ? refusal.response : undefined;
    step("a refusal", response?.status === 422, refusal);
    const problem = ids.ProblemFromJSON(await response?.json());
    step("its problem", problem.reason === "type" && problem.type === "/problems/invalid-parameter", problem);
    const slug = problem.type.slice("/problems/".length) as ids.Slug;
    // The client accepts any content type, and the service sends this page as text unless the client requests JSON.
    const unset = await new ids.OperationApi(configuration).explainProblem({ slug }).catch((error: unknown) => error);
    const asking = new ids.Configuration({ basePath: url, headers: { Accept: "application/json" } });
    const page = await new ids.OperationApi(asking).explainProblem({ slug });
    gap("the page of its slug", unset instanceof SyntaxError && page.status === 422 && page.safeAction !== "", unset);
    const { formats } = await new ids.FormatsApi(configuration).listFormats();
    step("formats", formats.some((format) => format.name === "snowflake"), formats);
}

use().catch((error) => step("all of it", false, error));
