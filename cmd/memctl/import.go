package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/vfs"
)

type importFlags struct {
	from, zone        string
	setAside, replace bool
}

func importCommand(a *cli.App) *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import DIR|FILE|-",
		Short: "Import memories of another system",
		Long: `Import memories and assemblies of another system, or lines of JSON as memctl export writes them.
The source is only read. The report names every file that could not be imported, with the
reason, and every member that was read under another name or that Varve does not know.

If the folder has a FAISS index (faiss_index.bin, or vector_index/ of a store) with a mapping
from ids to vectors, or with vector numbers that are the md5 of the ids, memories and assemblies
whose document has no embedding get theirs from the index, and the vector numbers are kept. The
documents take precedence: a vector that differs from the embedding of its document is reported
as stale, a vector whose id no document has as a ghost, and an unreadable index does not affect
the import of the documents. --json counts them under "vectors".

Records of mem0 (memory), LangChain (messages, documents, a dump of InMemoryVectorStore),
llama_index (docstore.json, chat stores) and of chats (role, content) are recognized one by one, as
lines, as an array, or in the document that holds them. The report says how many were recognized as
what, and counts what was left out by the kind of the reason; of each kind it names the first
10,000. If anything of the source was left out, also a second text under one id, the exit status is
6; what the store has already is not.

A second run adds only what is new. A memory or an assembly that the store already has with
another text is kept as it is and reported, unless --replace is given. A text that was purged from
the store is refused and reported: memctl put --force-purged stores it. If --store names a folder
that is not a store yet, a store is created there.

A folder of Markdown or of other files is imported as notes by memctl note import.`,
		Example: `  memctl import --from synthians ~/synthians/storage --store memory
  memctl import sessions/ --zone Europe/Berlin
  memctl export -s old | memctl import - -s new`,
		Args: cli.Exactly(1, "a folder or file, or - for stdin"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error { return importFrom(a, cmd, args[0], &f) }),
	}
	fl := c.Flags()
	fl.StringVar(&f.from, "from", "", "`format`: "+formats()+"; detected if omitted")
	fl.StringVar(&f.zone, "zone", "UTC", "time `zone` of times that name no zone: UTC, Local, Europe/Berlin, +02:00")
	fl.BoolVar(&f.setAside, "set-aside", false,
		"also import memories that exist only in backups/, corrupted_backups/ or ltm/")
	fl.BoolVar(&f.replace, "replace", false, "replace memories and assemblies whose text in the store differs")
	return c
}

// formats returns the names of the formats that import reads, as a list for a message.
func formats() string {
	var names []string
	for _, f := range importer.Formats() {
		names = append(names, string(f))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func importFrom(a *cli.App, cmd *cobra.Command, from string, f *importFlags) error {
	ctx := cmd.Context()
	zone, err := parseZone(f.zone)
	if err != nil {
		return cli.Usagef(cmd.CommandPath(), "--zone %w", err)
	}
	if f.from != "" && !slices.Contains(importer.Formats(), importer.Format(f.from)) {
		return cli.Usagef(cmd.CommandPath(), "--from %q: must be %s", f.from, formats())
	}
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	src, err := openSource(a, cmd, from, f, importer.Options{Location: zone, SetAside: f.setAside})
	if err != nil {
		return err
	}
	defer src.Close()
	how := cli.Write
	if a.Named() != "" {
		how = cli.Create
	}
	more, err := a.Embedding(func(o *varve.Options) { o.NaiveTimes, o.NoBackground = zone, false })
	if err != nil {
		return err
	}
	err = a.WithIn(ctx, dir, how, more, func(st *varve.Store) error {
		in := &intake.Intake{Store: st, Limits: cli.LimitsOf(st.Admin().Config()),
			Groups: cli.AssemblyLimitsOf(st.Admin().Config()), Zone: zone, Replace: f.replace, Progress: a.Counter("importing"),
			Began: a.Clock()}
		in.Report = intake.Report{From: string(src.Format()), Source: from, Store: dir, Problems: []importer.Problem{},
			Counts: map[importer.Kind]int{}}
		err := in.Run(ctx, src)
		if ferr := st.Flush(ctx); err == nil { // if the import was interrupted, closing the store flushes
			err = ferr
		}
		reportImport(a, &in.Report)
		if in.Failed > 0 {
			a.Tell(&cli.Failure{
				Kind: "refused", Message: fmt.Sprintf("%s of the source could not be imported: see the listed problems",
					cli.Count(in.Failed, "entry", "entries")),
				Path: from, Fix: "correct the files that the problems name, then import again", Code: cli.CodeRefused,
			})
		}
		return err
	})
	return cli.Resumable(err, "only missing items are added")
}

func openSource(a *cli.App, cmd *cobra.Command, from string, f *importFlags,
	o importer.Options) (*importer.Source, error) {
	if from != "-" {
		src, err := importer.Open(from, importer.Format(f.from), o)
		if errors.Is(err, vfs.ErrNotRegular) {
			err = cli.WithFix(err, "name a file or a folder; memctl import - reads lines from stdin")
		} else if f.from == "" && errors.Is(err, varve.ErrInvalid) && isFolder(from) && !cli.IsStore(from) {
			err = cli.WithFix(err, "memctl note import DIR imports all files of a folder as notes, whatever they "+
				"contain")
		}
		return src, err
	}
	if f.from == string(importer.Synthians) || f.from == string(importer.Vizor) {
		return nil, cli.Usagef(cmd.CommandPath(), "only lines can be read from stdin; --from %s needs a folder or file",
			f.from)
	}
	return importer.OpenLines(intake.Interruptible(cmd.Context(), a.In), "stdin", o), nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// reportImport prints how many items were imported, and the reason for each item that was not imported.
func reportImport(a *cli.App, r *intake.Report) {
	if a.Document != nil {
		a.Document.All(r)
		return
	}
	a.Say("%s: %s (%s) into %s: %d new, %d present already, %d different and kept, %d replaced",
		cli.Printable(r.Source), cli.Count(r.Total(), "memory", "memories"), r.From, cli.Printable(r.Store), r.New, r.Same,
		r.Kept, r.Replaced)
	sayForms(a, r)
	if as := &r.Assemblies; as.Total() > 0 {
		a.Say("%s: %d new, %d present already, %d different and kept, %d replaced",
			cli.Count(as.Total(), "assembly", "assemblies"), as.New, as.Same, as.Kept, as.Replaced)
	}
	sayRead(a, &r.Report)
	problems := slices.Clone(r.Problems)
	slices.SortStableFunc(problems, func(x, y importer.Problem) int { return cmp.Compare(x.Kind, y.Kind) })
	var kind importer.Kind
	named := map[importer.Kind]int{}
	for _, p := range problems {
		if named[p.Kind]++; a.Quiet && !intake.Refusal(p) {
			continue
		}
		if p.Kind != kind {
			kind = p.Kind
			fmt.Fprintf(a.Out, "%s: %d\n", kind, r.Counts[kind])
		}
		where := p.Path
		if p.ID != "" {
			where = joinNonEmpty(p.Path, "id "+p.ID)
		}
		fmt.Fprintf(a.Out, "  %s: %s\n", cli.Printable(where), cli.Printable(p.Reason))
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
		if n := r.Counts[kind] - named[kind]; n > 0 {
			fmt.Fprintf(a.Out, "%s: %d more problems of this kind\n", kind, n)
		}
	}
}

// sayForms prints how many records were recognized in each format. If the user requested a format, and all records have
// it, sayForms prints nothing.
func sayForms(a *cli.App, r *intake.Report) {
	if len(r.Forms) == 0 || len(r.Forms) == 1 && string(r.Forms[0].Format) == r.From {
		return
	}
	var list []string
	for _, f := range r.Forms {
		list = append(list, fmt.Sprintf("%d as %s", f.Count, f.Format))
	}
	a.Say("recognized: %s", strings.Join(list, ", "))
}

// sayRead prints which members of the imported records were renamed and which are unknown, and then the remarks of the
// importer about single files.
func sayRead(a *cli.App, r *importer.Report) {
	var under, kept []string
	for _, m := range r.Members {
		switch {
		case m.As == "":
			kept = append(kept, fmt.Sprintf("%s (%d %s)", m.Name, m.Count, m.Of))
		case m.As != m.Name:
			under = append(under, fmt.Sprintf("%s as %s (%d %s)", m.Name, m.As, m.Count, m.Of))
		}
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"members read under another name", under}, {"unknown members, kept unchanged", kept}} {
		if len(l.list) > 0 {
			a.Say("%s: %s", l.what, cli.Printable(strings.Join(l.list, ", ")))
		}
	}
	for _, f := range r.Files {
		a.Say("%s: %s", cli.Printable(f.Path), cli.Printable(f.What))
	}
}

func joinNonEmpty(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// parseZone parses a name of the time zone database or an offset from UTC.
func parseZone(s string) (*time.Location, error) {
	for _, layout := range []string{"Z07:00", "-07:00", "-0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, seconds := t.Zone()
			return time.FixedZone(s, seconds), nil
		}
	}
	l, err := time.LoadLocation(s)
	if err != nil || s == "" {
		return nil, fmt.Errorf("%q is neither the name of a time zone (Europe/Berlin, UTC, Local) nor an offset (+02:00)", s)
	}
	return l, nil
}
