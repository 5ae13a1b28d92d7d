// Uses the client that OpenAPI Generator makes from openapi-3.0.yaml. Usage: Client URL LEDGER
// CHAIN.

import ids.ApiClient;
import ids.ApiException;
import ids.api.*;
import ids.model.*;
import java.io.File;
import java.util.List;
import java.util.Map;

public class Client {
    static void step(String name, boolean ok, Object seen) {
        report("step: ", name, ok, seen);
    }

    static void gap(String name, boolean ok, Object seen) {
        report("gap: ", name, ok, seen);
    }

    static void report(String kind, String name, boolean ok, Object seen) {
        if (!ok) {
            System.out.println("failed: " + name + ": " + seen);
            System.exit(1);
        }
        System.out.println(kind + name);
    }

    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(args[0]);
        IdsApi minting = new IdsApi(client);
        LedgersApi ledgers = new LedgersApi(client);
        ConjunctionsApi conjunctions = new ConjunctionsApi(client);

        MintAnswer one = minting.mint("snowflake", null, null, null, null, null, null, null);
        step("an id without a body", one.getIds().size() == 1, one);
        MintAnswer three = minting.mint("snowflake", null, null, null, null, null, null, new MintRequest().count(3));
        step("ids with a body", three.getIds().size() == 3, three);
        MintAnswer many = minting.mint("payment", 1000, null, null, null, null, null, null);
        step("a batch", many.getCount() == 1000 && many.getIds().size() == 1000, many.getCount());
        MintAnswer typed = minting.mint("typeid", null, null, "user", null, null, null, null);
        step("an id of a type", typed.getIds().size() == 1 && typed.getIds().get(0).startsWith("user_"), typed);
        DecodeAnswer read = minting.decode(one.getIds().get(0), "snowflake", null, null, null);
        step("a decode", read.getMatches().get(0).getCanonical().equals(one.getIds().get(0)), read);
        List<DecodeManyAnswerInner> bulk = minting.decodeMany(three.getIds(), null, null, null, null, null, null);
        step("decodes", bulk.size() == 3 && bulk.get(2).getFormat().equals("snowflake"), bulk);
        Event opened = new Event().event("Opened").entities(Map.of());
        Ledger ledger = ledgers.createLedger(opened, null, "create", null);
        step("a ledger", ledger.getEvents() == 1, ledger);
        Event ordered = new Event().event("Ordered").entities(Map.of("order", List.of("1")));
        AppendRequest order = new AppendRequest().events(List.of(ordered));
        var first = ledgers.appendWithHttpInfo(ledger.getLedger(), order, null, null, "append", null);
        step("an append", first.getData().getIds().size() == 1, first);
        var again = ledgers.appendWithHttpInfo(ledger.getLedger(), order, null, null, "append", null);
        step("its replay", again.getData().getIds().equals(first.getData().getIds()), again);
        step("told apart by status", first.getStatusCode() == 201 && again.getStatusCode() == 200, again);
        LedgerCheck checked = ledgers.verifyLedger(args[1], new File(args[2]), null, null);
        // The generated client sends the path of the file as JSON, instead of the content of the file.
        gap("a chain checked", checked.getError().getDetail().contains(args[2]), checked);
        Report report = new Report().tca("2024-02-01T00:00:00Z").primary(25544L).secondary(48274L);
        ReportsAnswer reports = conjunctions.report(List.of(report), null, null, null, null, null, null);
        step("a report", reports.getIds().equals(List.of("zwwqlzz-pjjmxmd-lkpvwq")), reports);
        report.tca("2024-02-01T01:00:00Z").CONJUNCTION_EVENT_ID(reports.getIds().get(0));
        ReportsAnswer moved = conjunctions.report(List.of(report), null, null, null, "keep", null, null);
        step("a report that moved by an hour", moved.getDetails().get(0).getTcaDeltaUs() == 3_600_000_000L, moved);
        Report wrong = new Report().tca("2024-02-01T00:00:00Z").primary(25544L).secondary(25544L);
        ReportsAnswer some = conjunctions.report(List.of(wrong, report), null, null, null, null, true, null);
        boolean isRefused = some.getIds().get(0) == null && some.getDetails().get(0).getProblem().getStatus() == 422;
        step("reports, one of them wrong", isRefused, some);
        ApiException refusal = null;
        try {
            minting.mint("siq", null, null, "unknown", null, null, null, null);
        } catch (ApiException exception) {
            refusal = exception;
        }
        step("a refusal", refusal != null && refusal.getCode() == 422, refusal);
        Problem problem = client.getObjectMapper().readValue(refusal.getResponseBody(), Problem.class);
        boolean isOfType = problem.getReason().equals("type");
        step("its problem", isOfType && problem.getType().equals("/problems/invalid-parameter"), problem);
        Slug slug = Slug.fromValue(problem.getType().substring("/problems/".length()));
        // The client accepts any content type, and the service sends this page as text unless the client requests JSON.
        String unset = "";
        try {
            unset += new OperationApi(client).explainProblem(slug, null);
        } catch (ApiException exception) {
            unset = exception.toString();
        }
        client.setRequestInterceptor(request -> request.setHeader("Accept", "application/json"));
        ProblemPage page = new OperationApi(client).explainProblem(slug, null);
        boolean isPage = page.getStatus() == 422 && !page.getSafeAction().isEmpty();
        gap("the page of its slug", isPage && unset.contains("no int/Int-argument"), unset);
        List<FormatInfo> formats = new FormatsApi(client).listFormats(null, null, null, null).getFormats();
        step("formats", formats.stream().anyMatch(format -> format.getName().equals("snowflake")), formats);
    }
}
