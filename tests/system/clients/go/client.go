// Uses the client that OpenAPI Generator makes from openapi-3.0.yaml. Usage: client URL LEDGER
// CHAIN.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"ids"
)

func step(name string, ok bool, seen ...any) {
	if !ok {
		fmt.Println("failed:", name, seen)
		os.Exit(1)
	}
	fmt.Println("step:", name)
}

func main() {
	c := ids.NewConfiguration()
	c.Servers = ids.ServerConfigurations{{URL: os.Args[1]}}
	client, ctx, known := ids.NewAPIClient(c), context.Background(), os.Args[2]
	one, _, err := client.IdsAPI.Mint(ctx, "snowflake").Execute()
	step("an id without a body", err == nil && len(one.Ids) == 1, err)
	body := ids.NewMintRequest()
	body.SetCount(3)
	three, _, err := client.IdsAPI.Mint(ctx, "snowflake").MintRequest(*body).Execute()
	step("ids with a body", err == nil && len(three.Ids) == 3, err)
	many, _, err := client.IdsAPI.Mint(ctx, "payment").Count(1000).Execute()
	step("a batch", err == nil && many.Count == 1000 && len(many.Ids) == 1000, err)
	typed, _, err := client.IdsAPI.Mint(ctx, "typeid").Type_("user").Execute()
	step("an id of a type", err == nil && len(typed.Ids) == 1 && strings.HasPrefix(typed.Ids[0], "user_"), err)
	read, _, err := client.IdsAPI.Decode(ctx, one.Ids[0]).Format("snowflake").Execute()
	step("a decode", err == nil && read.Matches[0].Canonical == one.Ids[0], err)
	bulk, _, err := client.IdsAPI.DecodeMany(ctx).RequestBody(three.Ids).Execute()
	step("decodes", err == nil && len(bulk) == 3 && *bulk[2].Format.Get() == "snowflake", err)
	event := ids.NewEvent(map[string]interface{}{}, "Opened")
	ledger, _, err := client.LedgersAPI.CreateLedger(ctx).Event(*event).IdempotencyKey("create").Execute()
	step("a ledger", err == nil && ledger.Events == 1, err)
	order := ids.NewAppendRequest([]ids.Event{*ids.NewEvent(map[string]interface{}{"order": []string{"1"}}, "Ordered")})
	append := client.LedgersAPI.Append(ctx, ledger.Ledger).AppendRequest(*order).IdempotencyKey("append")
	first, created, err := append.Execute()
	step("an append", err == nil && len(first.Ids) == 1, err)
	again, replayed, err := append.Execute()
	step("its replay", err == nil && again.Ids[0] == first.Ids[0], err)
	step("told apart by status", created.StatusCode == 201 && replayed.StatusCode == 200)
	chain, err := os.Open(os.Args[3])
	if err != nil {
		panic(err)
	}
	checked, _, err := client.LedgersAPI.VerifyLedger(ctx, known).Body(chain).Execute()
	step("a chain checked", err == nil && checked.Valid && checked.Events > 1, err)
	report := ids.NewReport(25544, 48274, "2024-02-01T00:00:00Z")
	reports, _, err := client.ConjunctionsAPI.Report(ctx).Report([]ids.Report{*report}).Execute()
	step("a report", err == nil && *reports.Ids[0] == "zwwqlzz-pjjmxmd-lkpvwq", err)
	report.SetTca("2024-02-01T01:00:00Z")
	report.SetCONJUNCTION_EVENT_ID(*reports.Ids[0])
	moved, _, err := client.ConjunctionsAPI.Report(ctx).Report([]ids.Report{*report}).Noted("keep").Execute()
	step("a report that moved by an hour", err == nil && *moved.Details[0].TcaDeltaUs == 3_600_000_000, err)
	wrong := ids.NewReport(25544, 25544, "2024-02-01T00:00:00Z")
	some, _, err := client.ConjunctionsAPI.Report(ctx).Report([]ids.Report{*wrong, *report}).Partial(true).Execute()
	step("reports, one of them wrong", err == nil && some.Count == 1 && some.Ids[0] == nil && some.Details[0].Problem.Status == 422, err)
	_, response, err := client.IdsAPI.Mint(ctx, "siq").Type_("unknown").Execute()
	refusal, isRefusal := err.(*ids.GenericOpenAPIError)
	step("a refusal", isRefusal && response.StatusCode == 422, err)
	problem, isTyped := refusal.Model().(ids.Problem)
	step("its problem", isTyped && problem.Type == "/problems/invalid-parameter" && *problem.Reason == "type", refusal.Model())
	slug, err := ids.NewSlugFromValue(strings.TrimPrefix(problem.Type, "/problems/"))
	if err != nil {
		panic(err)
	}
	page, _, err := client.OperationAPI.ExplainProblem(ctx, *slug).Execute()
	step("the page of its slug", err == nil && page.Status == 422 && page.SafeAction != "", err)
	formats, _, err := client.FormatsAPI.ListFormats(ctx).Execute()
	step("formats", err == nil && len(formats.Formats) > 5, err)
}
