// Calls a server that misbehaves: see hostile/mod.rs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"ids/idmint"
)

func kindOf(err error) string {
	for kind, name := range map[error]string{
		idmint.ErrRefused:     "refused",
		idmint.ErrUnavailable: "unavailable",
		idmint.ErrBadResponse: "bad-response",
		idmint.ErrClosed:      "closed",
	} {
		if errors.Is(err, kind) {
			return name
		}
	}
	panic(err)
}

func call(token, url, name, kind string, seconds int, act func(*idmint.Ids) (string, error)) string {
	options := idmint.Options{Token: token + "\n", Timeout: 500 * time.Millisecond}
	if seconds == 0 {
		options.Timeout = 3 * time.Second
	}
	if name == "bulk" {
		options.PrefetchCount = 10_000
	}
	ids, err := idmint.New([]string{url}, "snowflake", options)
	if err != nil {
		panic(err)
	}
	defer ids.Close()
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	count, seen, messages := 0, map[string]bool{}, map[string]bool{}
	var longest time.Duration
	var failure idmint.Error
	var failed string
	for {
		begun := time.Now()
		id, err := act(ids)
		if since := time.Since(begun); since > longest {
			longest = since
		}
		if err == nil {
			count, seen[id] = count+1, true
		} else {
			var own *idmint.Error
			if !errors.As(err, &own) {
				panic(err)
			}
			failure, failed = *own, kindOf(err)
			messages[fmt.Sprintf("%v %+v %#v", err, own.Problem, options)] = true
			for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
				messages[fmt.Sprintf("%v %+v", cause, cause)] = true
			}
		}
		if time.Now().After(until) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	message := strings.Join(strings.Fields(fmt.Sprint(messages)), " ")
	return fmt.Sprintf("%s\t%s\t%s\t%v\t%d\t%d\t%d\t%d\t%s\n", name, kind, failed, failure.OutcomeUnknown,
		failure.RetryAfter.Milliseconds(), longest.Milliseconds(), count, len(seen), message)
}

func main() {
	var running sync.WaitGroup
	lines := make([]string, len(os.Args))
	for at, one := range os.Args[2:] {
		at, name, url := at, strings.SplitN(one, "=", 2)[0], strings.SplitN(one, "=", 2)[1]
		running.Add(1)
		go func() {
			defer running.Done()
			lines[at] = call(os.Args[1], url, name, "next", 10, func(ids *idmint.Ids) (string, error) {
				id, err := ids.Next(context.Background())
				return fmt.Sprint(id), err
			}) + call(os.Args[1], url, name, "append", 0, func(ids *idmint.Ids) (string, error) {
				appended, err := ids.Append(context.Background(), "aa77f99c", []any{map[string]any{"event": "Paid", "entities": map[string]any{}}})
				return fmt.Sprint(appended), err
			})
		}()
	}
	running.Wait()
	fmt.Print(strings.Join(lines, ""))
}
