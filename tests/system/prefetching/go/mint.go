// Mints ids. ../mod.rs describes the arguments, the input and the output.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"ids/idmint"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func main() {
	threads, count := number(os.Args[3]), number(os.Args[4])
	validity := time.Duration(number(os.Args[5])) * time.Second
	options := idmint.Options{PrefetchValidity: validity, Timeout: 2 * time.Minute}
	ids, err := idmint.New(strings.Split(os.Args[1], ","), os.Args[2], options)
	check(err)
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		records := make([]byte, 16*count)
		var running sync.WaitGroup
		for thread := 0; thread < threads; thread++ {
			mine := records[count*thread/threads*16 : count*(thread+1)/threads*16]
			running.Add(1)
			go func() {
				defer running.Done()
				for ; len(mine) > 0; mine = mine[16:] {
					asked := time.Now().UnixMilli()
					id, err := ids.Next(context.Background())
					check(err)
					binary.BigEndian.PutUint64(mine, id)
					binary.BigEndian.PutUint64(mine[8:], uint64(asked))
				}
			}()
		}
		running.Wait()
		_, err := os.Stdout.Write(records)
		check(err)
	}
	ids.Close()
	_, err = ids.Next(context.Background())
	if !errors.Is(err, idmint.ErrClosed) {
		check(fmt.Errorf("a closed one says %v", err))
	}
}
