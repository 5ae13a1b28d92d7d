// Runs the recipe in recipe.go. Each row of a batch must get its own id.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/mattn/go-sqlite3"
	"ids/idmint"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	ids, err := idmint.New(os.Args[1:2], "snowflake", idmint.Options{})
	check(err)
	defer ids.Close()
	db, err := sql.Open("sqlite3", ":memory:")
	check(err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE orders (id bigint PRIMARY KEY, item text)")
	check(err)
	check(order(context.Background(), db, ids, []string{"tea", "milk", "sugar"}))
	check(order(context.Background(), db, ids, nil))
	var count, least int64
	check(db.QueryRow("SELECT count(DISTINCT id), min(id) FROM orders").Scan(&count, &least))
	if count != 3 || least < 1<<60 {
		check(fmt.Errorf("%d ids, the least is %d", count, least))
	}
	fmt.Println("done")
}
