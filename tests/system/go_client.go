// Uses the client that OpenAPI Generator has made of openapi-3.0.yaml: go_client URL.
package main

import (
	"context"
	"fmt"
	"os"

	"ids"
)

func must(what string, ok bool, more ...any) {
	if !ok {
		fmt.Println("FAILED:", what, more)
		os.Exit(1)
	}
	fmt.Println(what)
}

func main() {
	c := ids.NewConfiguration()
	c.Servers = ids.ServerConfigurations{{URL: os.Args[1]}}
	client, ctx := ids.NewAPIClient(c), context.Background()
	one, _, err := client.IdsAPI.Mint(ctx, "snowflake").Execute()
	must("an id without a body", err == nil && len(one.Ids) == 1, err)
	body := ids.NewMintRequest()
	body.SetCount(3)
	three, _, err := client.IdsAPI.Mint(ctx, "snowflake").MintRequest(*body).Execute()
	must("three with a body", err == nil && len(three.Ids) == 3, err)
	many, _, err := client.IdsAPI.Mint(ctx, "payment").Count(2).Execute()
	must("a batch", err == nil && many.Count == 2, err)
	read, _, err := client.IdsAPI.Decode(ctx, one.Ids[0]).Format("snowflake").Execute()
	must("a decode", err == nil && len(read.Matches) > 0 && read.Matches[0].Format == "snowflake", err)
	bulk, _, err := client.IdsAPI.DecodeMany(ctx).RequestBody(three.Ids).Execute()
	must("decodes", err == nil && len(bulk) == 3, err)
	event := ids.NewEvent(map[string]interface{}{}, "Opened")
	ledger, _, err := client.LedgersAPI.CreateLedger(ctx).Event(*event).IdempotencyKey("go-1").Execute()
	must("a ledger", err == nil, err)
	order := ids.NewAppendRequest([]ids.Event{*ids.NewEvent(map[string]interface{}{"order": []string{"1"}}, "Ordered")})
	for turn, status := range []int{201, 200} {
		answer, response, err := client.LedgersAPI.Append(ctx, ledger.Ledger).AppendRequest(*order).IdempotencyKey("go-2").Execute()
		must(fmt.Sprint("append ", turn), err == nil && response.StatusCode == status && len(answer.Ids) == 1, err)
	}
	report := ids.NewReport(25544, 48274, "2024-02-01T00:00:00Z")
	reports, _, err := client.ConjunctionsAPI.Report(ctx).Report([]ids.Report{*report}).Execute()
	must("a report", err == nil && *reports.Ids[0] == "zwwqlzz-pjjmxmd-lkpvwq", err)
	body.SetCount(0)
	_, response, err := client.IdsAPI.Mint(ctx, "snowflake").MintRequest(*body).Execute()
	generic, isGeneric := err.(*ids.GenericOpenAPIError)
	must("a refusal", isGeneric && response.StatusCode == 422, err)
	problem, isProblem := generic.Model().(ids.Problem)
	must("its problem", isProblem && *problem.Reason == "count", generic.Model())
	formats, _, err := client.FormatsAPI.ListFormats(ctx).Execute()
	must("formats", err == nil && len(formats.Formats) > 5, err)
}
