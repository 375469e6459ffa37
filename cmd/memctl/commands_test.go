package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// commandsOf are all commands that can be run, as cobra knows them: "get", "working get".
func commandsOf(t *testing.T) []string {
	t.Helper()
	a := &cli.App{Environment: cli.Environment{Getenv: func(string) string { return "" }, Clock: time.Now}}
	var all []string
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			all = append(all, strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "memctl")))
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.Program(root))
	slices.Sort(all)
	return all
}

// everyCommand fails unless a table has a case for each command, and nothing else; where says which
// table.
func everyCommand[T any](t *testing.T, table map[string]T, where string) {
	t.Helper()
	all := commandsOf(t)
	for _, name := range all {
		if _, ok := table[name]; !ok {
			t.Errorf("memctl %s has no case in %s: add one", name, where)
		}
	}
	for name := range table {
		if !slices.Contains(all, name) {
			t.Errorf("there is no command memctl %s", name)
		}
	}
}
