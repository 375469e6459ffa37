package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	memctl := flag.String("memctl", "memctl", "the `program`")
	reference := flag.String("reference", "", "the reference server's dist/index.js")
	sizes := flag.String("n", "100,1000,10000,30000", "number of entities, and of relations")
	each := flag.Duration("time", 500*time.Millisecond, "duration of the calls of each kind")
	dir := flag.String("dir", "", "`folder` for the stores; stores of an earlier run are used again")
	prepare := flag.Bool("prepare", false, "only create the stores")
	notes := flag.String("memories", "",
		"measure the tools for memories instead, in stores of these sizes: 1000,10000,100000")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if *notes != "" {
		err = runMemories(ctx, *memctl, *dir, *notes, *each)
	} else {
		err = run(ctx, *memctl, *reference, *dir, *sizes, *each, *prepare)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, memctl, reference, dir, sizes string, each time.Duration, prepare bool) error {
	dir, err := filepath.Abs(dir) // the reference server takes others for relative to itself
	if err != nil {
		return err
	}
	fmt.Println("| entities | call | reference, calls/s | p50 | Varve, calls/s | p50 | p99 |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		at := filepath.Join(dir, size)
		env := []string{"MEMORY_FILE_PATH=" + filepath.Join(at, "memory.jsonl"), "VARVE_STORE="}
		if err := takeOver(ctx, at, env, memctl, n); err != nil {
			return err
		}
		if prepare {
			continue
		}
		theirs, err := measure(ctx, n, each, env, "node", reference)
		if err != nil {
			return err
		}
		ours, err := measure(ctx, n, each, env, memctl, "mcp", "--tools", "graph,memory")
		if err != nil {
			return err
		}
		for i, t := range theirs {
			fmt.Printf("| %d | %s | %s | %s | %s | %s | %s |\n", n, t.call, t.rate(), t.quantile(50), ours[i].rate(),
				ours[i].quantile(50), ours[i].quantile(99))
		}
	}
	return nil
}

func runMemories(ctx context.Context, memctl, dir, sizes string, each time.Duration) error {
	fmt.Println("| memories | call | calls/s | p50 | p99 |")
	fmt.Println("|---|---|---|---|---|")
	for _, size := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		all, err := memories(ctx, memctl, dir, n, each)
		if err != nil {
			return err
		}
		for _, t := range all {
			fmt.Printf("| %d | %s | %s | %s | %s |\n", n, t.call, t.rate(), t.quantile(50), t.quantile(99))
		}
	}
	return nil
}

// takeOver writes the graph with which both servers start, and lets memctl take it over, flush and close before
// anything is measured. If an earlier run has written the graph, takeOver does nothing.
func takeOver(ctx context.Context, at string, env []string, memctl string, n int) error {
	file := filepath.Join(at, "memory.jsonl")
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	if err := writeGraph(file, n); err != nil {
		return err
	}
	began := time.Now()
	first, err := start(ctx, env, memctl, "mcp", "--tools", "graph,memory")
	if err == nil {
		err = first.end()
	}
	fmt.Fprintf(os.Stderr, "%d entities and relations each were taken over, flushed and closed in %v\n", n,
		time.Since(began).Round(time.Millisecond))
	return err
}

// writeGraph writes the graph with which both servers start.
func writeGraph(name string, n int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w,
			`{"type":"entity","name":"entity %d","entityType":"kind %d",`+
				`"observations":["was seen at place %d","weighs %d grams"]}`+"\n", i, i%7, i*31%1000, i)
	}
	for i := range n {
		fmt.Fprintf(w, `{"type":"relation","from":"entity %d","to":"entity %d","relationType":"leads to"}`+"\n", i, (i+1)%n)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// times are the durations of one kind of call.
type times struct {
	call string
	took []time.Duration
}

func (t *times) rate() string {
	var all time.Duration
	for _, d := range t.took {
		all += d
	}
	return strconv.Itoa(int(float64(len(t.took)) / all.Seconds()))
}

func (t *times) quantile(q int) string {
	slices.Sort(t.took)
	d := t.took[(len(t.took)-1)*q/100]
	return fmt.Sprintf("%.2f ms", float64(d)/1e6)
}

// measure makes each kind of call for a while. The last kind deletes the entities that the calls have created.
func measure(ctx context.Context, n int, each time.Duration, env []string, command ...string) ([]times, error) {
	s, err := start(ctx, env, command...)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.tool("search_nodes", `{"query":"no such thing"}`); err != nil {
		return nil, err
	}
	first := times{call: "the first search_nodes", took: []time.Duration{time.Since(began)}}
	kinds := []struct {
		name string
		args func(i int) string
	}{
		{"open_nodes", func(i int) string { return fmt.Sprintf(`{"names":["entity %d","entity %d"]}`, i%n, i*7%n) }},
		{"search_nodes", func(i int) string { return fmt.Sprintf(`{"query":"weighs %d grams"}`, i%n) }},
		{"read_graph", func(int) string { return `{}` }},
		{"create_entities", func(i int) string {
			return fmt.Sprintf(`{"entities":[{"name":"new %d","entityType":"t","observations":["one"]}]}`, i)
		}},
		{"create_relations", func(i int) string {
			return fmt.Sprintf(`{"relations":[{"from":"new %d","to":"entity %d","relationType":"r"}]}`, i, i%n)
		}},
		{"add_observations", func(i int) string {
			return fmt.Sprintf(`{"observations":[{"entityName":"entity %d","contents":["added %d"]}]}`, i%n, i)
		}},
		{"delete_entities", func(i int) string { return fmt.Sprintf(`{"entityNames":["new %d"]}`, i) }},
	}
	all := []times{first}
	for _, k := range kinds {
		t, err := repeat(s, k.name, each, k.args)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command[0], err)
		}
		all = append(all, t)
	}
	return all, s.end()
}

// repeat makes one kind of call for a while, but at least five times.
func repeat(s *client, name string, each time.Duration, args func(i int) string) (times, error) {
	t := times{call: name}
	for i, end := 0, time.Now().Add(each); i < 5 || time.Now().Before(end); i++ {
		began := time.Now()
		if err := s.tool(name, args(i)); err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
		t.took = append(t.took, time.Since(began))
	}
	return t, nil
}
