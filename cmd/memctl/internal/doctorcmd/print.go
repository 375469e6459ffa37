package doctorcmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// nameWidth is the width, in columns, of the name with which a line of the report begins.
const nameWidth = 11

// print writes the report as text.
func (e *examination) print() {
	a, r := e.a, &e.r
	line := func(name, format string, args ...any) {
		a.Out.InColour(cli.Bold, cli.Pad(name, nameWidth))
		fmt.Fprintf(a.Out, " %s\n", a.Fit(nameWidth+1, cli.Printable(fmt.Sprintf(format, args...))))
	}
	cli.ThisBuild().Print(a.Out)
	s := &r.System
	line("system", "%s, kernel %s, %s, memory %s%s", s.OS, orUnknown(s.Kernel), cli.Count(s.CPUs, "CPU", "CPUs"),
		cli.Size(s.Memory), map[bool]string{true: ", in a container"}[s.Container])
	line("limits", "%d open files (up to %d), %d watches in %d instances", s.OpenFiles, s.HardFiles, s.Watches,
		s.Instances)
	line("variables", "%s", orNone(strings.Join(r.Set, " ")))
	p := &r.Store
	found := "found"
	if !p.Found {
		found = "not found"
	}
	line("store", "%s, by %s; owner: %s; mode %s", found, p.By, p.Owner, orUnknown(p.Mode))
	line("volume", "%s, locks work: %v, read-only: %v, %s of %s and %d files free", orUnknown(p.Volume), p.Coherent,
		p.ReadOnly, cli.Size(p.Free), cli.Size(p.Total), p.Inodes)
	for _, z := range r.Sizes {
		line("size", "%s: %s in %s", z.Part, cli.Size(z.Bytes), cli.Count(int(z.Files), "file", "files"))
	}
	if c := r.Counts; c != nil {
		line("counts", "%s, %s, %s of %d dimensions", cli.Count(int(c.Memories), "memory", "memories"),
			cli.Count(int(c.Assemblies), "assembly", "assemblies"), cli.Count(int(c.Vectors), "vector", "vectors"), c.Dimension)
		line("log", "%s are read when the store is opened, %s are not in files yet, the history has %s",
			cli.Size(c.Backlog), cli.Size(c.Unflushed),
			cli.Size(c.History))
		line("state", "writable: %v, slowed: %v, watched: %v, %d memories wait for a vector, %d files in quarantine",
			c.Writable, c.Slowed,
			c.Watched, c.Pending, c.Aside)
		line("processes", "%d have the store open for writing, of which %d may have ended or run on another machine",
			c.Processes, c.Unsure)
		line("last", "flush %s, backup in backups/ %s", orNone(c.LastFlush), orNone(c.LastBackup))
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		list = append(list, fmt.Sprintf("%s %v", name, r.Settings[name]))
	}
	line("settings", "%s", orNone(strings.Join(list, ", ")))
	for _, l := range r.Locks {
		line("lock", "%s: held by %s, %d waiting", l.Name, strings.Trim(fmt.Sprint(l.Holders), "[]"), l.Waiting)
	}
	switch m := r.Embedder; {
	case m == nil:
		line("embedder", "none is configured")
	case m.Answers:
		line("embedder", "answers in %s", m.Took)
	default:
		line("embedder", "%s", m.Error)
	}
	for _, ev := range r.Events {
		line("event", "%s, %s%s", ev.Kind, cli.Count(ev.Count, "time", "times"), prefixed(": ", ev.Error))
	}
	if v := r.Verify; v != nil {
		list = nil
		for _, kind := range slices.Sorted(maps.Keys(v.Findings)) {
			list = append(list, fmt.Sprintf("%s %d", kind, v.Findings[kind]))
		}
		found := strings.Join(list, ", ")
		if found == "" && v.Incomplete == "" {
			found = "no findings"
		}
		line("verify", "read %s: %s, %s of the log: %s%s", v.Of, cli.Count(int(v.Files), "file", "files"),
			cli.Count(int(v.Entries), "entry", "entries"), found, prefixed(" incomplete: ", v.Incomplete))
	}
	if len(r.Wrong) == 0 {
		line("wrong", "no problem was found")
	}
	for _, w := range r.Wrong {
		line("wrong", "%s: %s → %s", w.Kind, w.Message, w.Fix)
	}
	line("next", "%s", r.Next)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
