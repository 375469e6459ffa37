package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve/bench/internal/children"
)

// waited is an engine whose waits are measured. An engine that lacks an operation lacks the method; the table then
// has a dash.
type waited interface {
	Name() string
	Open(dir string) error
	PutBatch([]Doc) error
	Close() error
}

// The operations whose waits are measured. An operation over many documents returns how many it has seen; the
// number must be correct, so that no engine is faster because it does less.
type (
	updater  interface{ Update(id string) error }
	deleter  interface{ Delete(id string) error }
	verifier interface{ Verify() error }
	counter  interface {
		Count(session string) (int, error)
	}
	searcher interface {
		Search(text string) (int, error)
	}
	getter interface {
		Get(id string) ([]byte, error)
		OpenUncached(dir string) error // as Open, without a cache of the engine itself
	}
	lister interface {
		List(session string) (int, error)
	}
	exporter interface {
		Export(file string) (int, error)
	}
	backuper interface{ Backup(path string) error }
)

// waitRow is a row of the table: an operation on a filled store. run returns the times of its calls, none if the engine
// does not have the operation.
type waitRow struct {
	name, what string
	run        func(w *waiting) (waitTimes, error)
}

var waitRows = []waitRow{
	{"update", "update of an old document", (*waiting).update},
	{"delete", "delete of an old document", (*waiting).delete},
	{"get", "get past the engine's cache", (*waiting).get},
	{"count", "count of a session", (*waiting).count},
	{"list", "list of a session", (*waiting).list},
	{"rare", "search by two rare words", (*waiting).rare},
	{"mixed", "search by a rare and two common words", (*waiting).mixed},
	{"common", "search by three common words", (*waiting).common},
	{"first", "open and first search", func(w *waiting) (waitTimes, error) { return w.first(0) }},
	{"verify", "verify", (*waiting).verify},
	{"export", "export of all", (*waiting).export},
	{"backup", "backup", (*waiting).backup},
	{"behind10k", "first search behind 10,000 puts", func(w *waiting) (waitTimes, error) { return w.behind(10_000) }},
	{"close10k", "close after 10,000 puts", func(w *waiting) (waitTimes, error) { return w.close(10_000) }},
	{"close40k", "close after 40,000 puts", func(w *waiting) (waitTimes, error) { return w.close(40_000) }},
	{"after40k", "open and first search after such a close",
		func(w *waiting) (waitTimes, error) { return w.first(40_000) }},
	{"within", "close within 2 s after 40,000 puts", (*waiting).closeWithin},
}

func waitedEngines() []func() waited {
	return []func() waited{
		func() waited { return &waitVarve{} }, func() waited { return &waitSQLite{} }, func() waited { return &waitBolt{} },
	}
}

// waits measures each row at each step, and writes the table. Each engine and size has its own process, because the
// heap that one leaves slows down the next.
func (c *config) waits(engines string) error {
	res := map[string]results{}
	var names []string
	for _, makeEngine := range waitedEngines() {
		name := makeEngine().Name()
		if engines == "" || slices.ContainsFunc(strings.Split(engines, ","), func(word string) bool {
			return strings.Contains(strings.ToLower(name), strings.ToLower(word))
		}) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("no engine %q: there are Varve, SQLite and bbolt", engines)
	}
	for round := range c.rounds {
		for _, size := range c.steps {
			for i := range names {
				name := names[(i+round)%len(names)]
				err := c.inFolder(func(dir string) error { return c.waitsOf(res, name, dir, size, round) })
				if err != nil {
					return fmt.Errorf("%s with %d: %w", name, size, err)
				}
			}
		}
	}
	return c.write(c.waitTable(res, names))
}

// waitsOf starts a process that measures the rows of one engine and size.
func (c *config) waitsOf(res map[string]results, name, dir string, size, round int) (err error) {
	var child children.Children
	defer func() { err = child.Close(err) }()
	err = child.Start("-waiter", name, "-dir", dir, "-n", strconv.Itoa(size), "-seed", strconv.Itoa(round+1), "-only",
		strings.Join(c.only, ","))
	if err != nil {
		return err
	}
	values := map[string]float64{}
	if err := children.ResultsOf(&child, func(v map[string]float64) { values = v }); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "round %d, %s with %d: %v\n", round+1, name, size, short(values))
	at := strconv.Itoa(size)
	if res[at] == nil {
		res[at] = results{}
	}
	res[at].add(name, values)
	return nil
}

// waitTable returns the table: a row for each operation and size, a column for each engine.
func (c *config) waitTable(res map[string]results, names []string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Where people wait\n\nMade by `%s` in `bench/`; the median of the rounds (%d), with the least "+
		"and the greatest if there are several. Milliseconds of a call, and behind the slash those of the processor. "+
		"Documents of 1.1 KB of words, %d to a session. Durable commits of %d documents fill the store and make the "+
		"puts before a close. "+
		"SQLite has an index of the sessions and an FTS5 index of the words, both made with each put; bbolt has "+
		"neither. A get past the cache is one without Varve's cache of documents, and with SQLite's smallest cache of "+
		"pages; bbolt has no cache of its own, and the system's page cache has the files. "+
		"A dash: the engine does not have the operation.\n\n%s\n", commandLine(), c.rounds, sessionDocs, waitBatch,
		machine(c.dir))
	fmt.Fprintf(&out, "| operation | holds | %s |\n|---|---:|%s\n", strings.Join(names, " | "),
		strings.Repeat("---:|", len(names)))
	for _, row := range waitRows {
		if len(c.only) > 0 && !slices.Contains(c.only, row.name) {
			continue
		}
		for _, size := range c.steps {
			at := strconv.Itoa(size)
			fmt.Fprintf(&out, "| %s | %s |", row.what, number(float64(size)))
			for _, name := range names {
				cell := "–"
				if took := res[at].cell(name, row.name); took != "" {
					cpu, _ := res[at].median(name, row.name+".cpu")
					cell = took + " / " + number(cpu)
				}
				fmt.Fprintf(&out, " %s |", cell)
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

// chosenWaits returns the names of rows in a comma-separated list; none means all rows.
func chosenWaits(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if !slices.ContainsFunc(waitRows, func(r waitRow) bool { return r.name == name }) {
			return nil, fmt.Errorf("no row %q", name)
		}
	}
	return names, nil
}
