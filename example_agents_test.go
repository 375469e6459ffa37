package varve_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/varve-db/varve"
)

// Two agents use one store: here in one process, but two work the same way. Both add to one memory, and neither loses
// what the other wrote; one waits for what the other finds out.
func Example_twoAgents() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	agent := func() *varve.Store {
		st, err := varve.Open(ctx, dir, nil)
		if err != nil {
			log.Fatal(err)
		}
		return st
	}
	researcher, writer := agent(), agent()
	defer researcher.Close()
	defer writer.Close()

	if _, err := researcher.Put(ctx, varve.Memory{ID: "rome", Content: "Rome:"}); err != nil {
		log.Fatal(err)
	}
	from := writer.Admin().Stats().Durable

	done := make(chan error)
	for _, a := range []struct {
		st   *varve.Store
		fact string
	}{{researcher, " founded 753 BC"}, {writer, " on seven hills"}} {
		go func() {
			_, err := a.st.Update(ctx, "rome", func(m *varve.Memory) error { m.Content += a.fact; return nil })
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}

	changes := 0
	for c, err := range writer.Watch(ctx, from) { // all commits since, by any process
		if err != nil {
			log.Fatal(err)
		}
		if changes++; changes == 2 {
			fmt.Println(c.ID, "has both:", len(c.Memory.Content) == len("Rome: founded 753 BC on seven hills"))
			break
		}
	}
	// Output: rome has both: true
}
