package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/writer"
)

// writerItem returns a writer for the JSON output, nil if the writer is unknown.
func writerItem(w *varve.Writer) *varve.Writer {
	if w.Number == 0 {
		return nil
	}
	return w
}

// writersShown is the maximum number of names of writers that a message lists.
const writersShown = 10

// noWriter returns a message that no writer has this name or number, with a list of the writers that exist. It returns
// "" if a writer has this name or number, or if the writers cannot be read.
func noWriter(ctx context.Context, st *varve.Store, name string) string {
	if name == "" || name == varve.UnknownWriter {
		return ""
	}
	list, err := st.Admin().Writers(ctx)
	if err != nil {
		return ""
	}
	number, err := strconv.ParseUint(name, 10, 32)
	byNumber := err == nil && number > 0
	fitted := writer.FitName(name)
	var names []string
	for i := range list {
		if w := &list[i]; byNumber && uint64(w.Number) == number || !byNumber && w.Is(fitted) {
			return ""
		}
		for _, s := range []string{list[i].Name(), list[i].Session} {
			if s != "" && !slices.Contains(names, s) && len(names) <= writersShown {
				names = append(names, s)
			}
		}
	}
	why := fmt.Sprintf("nothing was written by %s", cli.ShellQuote(cli.Printable(fitted)))
	switch {
	case len(list) == 0:
		return why + ": the store knows no writer"
	case len(names) > writersShown:
		return why + ": memctl log shows the writers"
	}
	slices.Sort(names)
	for i := range names {
		names[i] = cli.ShellQuote(names[i])
	}
	return why + "; the writers of this store are " + strings.Join(names, ", ")
}
