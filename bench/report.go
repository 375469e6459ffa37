package main

import (
	"fmt"
	"slices"
	"strings"
)

// results has the measured values by engine and measure, one value per round.
type results map[string]map[string][]float64

func (r results) add(engine string, values map[string]float64) {
	if r[engine] == nil {
		r[engine] = map[string][]float64{}
	}
	for name, v := range values {
		r[engine][name] = append(r[engine][name], v)
	}
}

// median returns the median, and reports whether there is any value.
func (r results) median(engine, measure string) (float64, bool) {
	v := slices.Sorted(slices.Values(r[engine][measure]))
	if len(v) == 0 {
		return 0, false
	}
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2, true
}

// cell returns the median as text, and the spread if there were several rounds.
func (r results) cell(engine, measure string) string {
	m, ok := r.median(engine, measure)
	if !ok {
		return ""
	}
	all := r[engine][measure]
	if len(all) == 1 {
		return number(m)
	}
	return fmt.Sprintf("**%s** (%s–%s)", number(m), number(slices.Min(all)), number(slices.Max(all)))
}

// number returns a number with about three significant digits, and with its thousands separated.
func number(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.3f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func short(values map[string]float64) string {
	var parts []string
	for name, v := range values {
		parts = append(parts, name+" "+number(v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

type column struct{ measure, title string }

// tables are the tables of the report; a table shows only rows that have a value.
var tables = []struct {
	title   string
	note    string
	columns []column
}{
	{"Durable puts", "", []column{
		{"put1", "1 goroutine, /s"}, {"put1.p50", "p50 µs"}, {"put1.p99", "p99 µs"},
		{"put64", "64 goroutines, /s"}, {"put64.p50", "p50 µs"}, {"put64.p99", "p99 µs"},
		{"batch1000", "batches of 1,000, docs/s"}, {"put4x16", "4 processes × 16, /s"}}},
	{"Four documents, changed by 4 processes × 16", "Longest: of all operations.", []column{
		{"hot.put", "puts/s"}, {"hot.put.longest", "longest ms"}, {"hot.update", "updates/s"},
		{"hot.update.longest", "longest ms"},
		{"hot.count", "increments/s"}, {"hot.count.longest", "longest ms"}}},
	{"Reads of what was just put", "", []column{
		{"new.1", "gets/s, first"}, {"new.2", "again"}, {"flushed.1", "after a flush"}, {"flushed.2", "again"},
		{"file", "without a cache"}, {"file.bare", "open, read, close"}, {"file.same", "its calls and hash alone"}}},
	{"Reads, and the filled store", "", []column{
		{"get1", "gets/s, 1 goroutine"}, {"get2", "gets/s, 2 goroutines"}, {"open", "open, ms"},
		{"disk", "disk, MiB"}, {"heap", "Go heap, MiB"}}},
	{"Settled: files and index durable",
		"Counted from the first put (64 goroutines) to the end of a flush. The limit has the calls of the files with their " +
			"guards; " +
			"the row below it also those of the log, of the index, and of reading what is replaced.", []column{
			{"create", "new files/s"}, {"create.cpu", "CPU µs each"}, {"create.acked", "of the time, puts"},
			{"replace", "replaced files/s"}, {"replace.cpu", "CPU µs each"}, {"replace.acked", "of the time, puts"}}},
}

func (c *config) report(res results) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# Results\n\nMade by `%s` in `bench/`.\n\n%s\n", commandLine(), machine(c.dir))
	fmt.Fprintf(&out,
		"%d rounds, engines interleaved; **median** (least–greatest). Bursts of %v, documents of %d bytes of %s, %s in the "+
			"filled store, %s files settled.\n",
		c.rounds, c.seconds, docSize, map[bool]string{true: "words", false: "random letters"}[prose], number(float64(c.n)),
		number(float64(c.files)))
	for _, t := range tables {
		head, rows := fmt.Sprintf("\n## %s\n\n", t.title), ""
		if t.note != "" {
			head += t.note + "\n\n"
		}
		head += "|"
		for _, col := range t.columns {
			head += " | " + col.title
		}
		head += " |\n|---" + strings.Repeat("|---:", len(t.columns)) + "|\n"
		for _, name := range c.rows() {
			row, any := "| "+name, false
			for _, col := range t.columns {
				cell := res.cell(name, col.measure)
				any = any || cell != ""
				if cell == "" && (len(c.only) == 0 || slices.Contains(c.only, "put4x16")) && col.measure == "put4x16" &&
					name != limitName && name != allCallsName {
					cell = "refuses a second process"
				}
				row += " | " + cell
			}
			if any {
				rows += row + " |\n"
			}
		}
		if rows != "" {
			out.WriteString(head + rows)
		}
	}
	out.WriteString("\n## Where it must stand\n\n" + targets(res))
	if len(c.only) == 0 || slices.Contains(c.only, "put4x16") {
		out.WriteString(remarks)
	}
	return out.String()
}

func (c *config) rows() []string {
	names := []string{limitName, allCallsName}
	for _, e := range c.engines {
		names = append(names, e().Name())
	}
	return names
}
