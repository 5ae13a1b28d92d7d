// Prints how many nanoseconds Next, a version 4 UUID and an atomic counter take: the median of 21 runs on one thread.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sort"
	"sync/atomic"
	"time"

	"ids/idmint"
)

const calls, runs = 20_000, 21

func nanos(call func()) float64 {
	var times []float64
	for run := 0; run < runs; run++ {
		begun := time.Now()
		for at := 0; at < calls; at++ {
			call()
		}
		times = append(times, float64(time.Since(begun).Nanoseconds())/calls)
	}
	sort.Float64s(times)
	return times[runs/2]
}

func main() {
	ids, err := idmint.New(os.Args[1:2], "snowflake", idmint.Options{PrefetchCount: 100_000, PrefetchCountMax: 100_000})
	if err != nil {
		panic(err)
	}
	next := func() {
		if _, err := ids.Next(context.Background()); err != nil {
			panic(err)
		}
	}
	uuid4 := func() {
		var uuid [16]byte
		if _, err := rand.Read(uuid[:]); err != nil {
			panic(err)
		}
		uuid[6], uuid[8] = uuid[6]&0x0f|0x40, uuid[8]&0x3f|0x80
	}
	var counter atomic.Uint64
	next()
	fmt.Printf("%.1f %.1f %.1f\n", nanos(next), nanos(uuid4), nanos(func() { counter.Add(1) }))
	ids.Close()
}
