package main

import (
	"fmt"
	"strings"
)

// target is a requirement of the design: a measurement of Varve compared with that of other engines or of a limit.
type target struct {
	what    string
	measure string
	against []string // rows of the report with which Varve is compared; the best one counts
	times   float64  // Varve's value must be at least this multiple of the best one
	atMost  bool     // Varve's value must be at most this multiple, not at least
}

var sqlites = []string{"SQLite (mattn, C)", "SQLite (modernc, Go)"}

var designTargets = []target{
	{"durable put, 1 writer, p50 µs", "put1.p50", []string{limitName}, 1.1, true},
	{"durable puts/s, 64 goroutines", "put64", []string{"Pebble"}, 2, false},
	{"durable puts/s, batches of 1,000", "batch1000", []string{"Pebble"}, 1, false},
	{"durable puts/s, 4 processes × 16", "put4x16", sqlites, 10, false},
	{"gets/s of raw bytes, hot, 1 goroutine", "get1", []string{"bbolt"}, 1, false},
	{"settled new files/s", "create", []string{limitName}, 0.8, false},
	{"settled replaced files/s", "replace", []string{limitName}, 0.8, false},
	{"settled new files/s, log and index in the limit", "create", []string{allCallsName}, 0.8, false},
	{"settled replaced files/s, log and index in the limit", "replace", []string{allCallsName}, 0.8, false},
}

// elsewhere lists the requirements of the design that other commands measure.
var elsewhere = []string{
	"open, 1,000,000 memories: this command with `-n 1000000 -engines varve`, column open (clean close; target < 1 ms); " +
		"after kill -9: `go run . -recover` (target < 100 ms with 64 MiB of log, < 500 ms with 1 GiB)",
	"heap with 1,000,000 memories: the same command, column Go heap (target < 64 MB)",
	"share of the limit by store size, burst rate by store size: `go run . -rates` (target ≥ 0.9)",
	"exact search beside FAISS: `go run ./vectors -n 10000,100000`, see VECTORS.md",
	"simulated crashes: `go test ./fuzz/...`",
}

func targets(res results) string {
	var out strings.Builder
	out.WriteString("| what | must be | Varve | against | |\n|---|---|---:|---:|---|\n")
	for _, t := range designTargets {
		best, who, found := 0.0, strings.Join(t.against, ", "), false
		for _, name := range t.against {
			if v, ok := res.median(name, t.measure); ok && (!found || (v > best) != t.atMost) {
				best, who, found = v, name, true
			}
		}
		sign := "≥"
		if t.atMost {
			sign = "≤"
		}
		ours, ok := res.median("Varve", t.measure)
		verdict, mine, theirs := "not measured", "", ""
		if ok {
			mine = number(ours)
		}
		if found {
			theirs = number(best)
		}
		if ok && found {
			verdict = fmt.Sprintf("%.2f × — missed", ours/best)
			if t.atMost && ours <= best*t.times || !t.atMost && ours >= best*t.times {
				verdict = fmt.Sprintf("%.2f × — met", ours/best)
			}
		}
		fmt.Fprintf(&out, "| %s | %s %g × %s | %s | %s | %s |\n", t.what, sign, t.times, who, mine, theirs, verdict)
	}
	out.WriteString("\nMeasured elsewhere:\n\n")
	for _, line := range elsewhere {
		out.WriteString("- " + line + "\n")
	}
	return out.String()
}
