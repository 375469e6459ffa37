package notecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
)

const (
	workers     = 8        // number of files that are imported or exported at once, so that their commits share a sync
	bytesAtOnce = 32 << 20 // maximum number of bytes of the contents of these files
)

func importCommand(a *cli.App) *cobra.Command {
	var into string
	var hidden, replace bool
	c := &cobra.Command{
		Use:   "import DIR",
		Short: "Import a folder of files as notes",
		Long: `Import the files in a folder, and in the folders below it, as notes: the file DIR/a/b.md becomes the note
a/b.md, with the same bytes and the time at which the file was written. The folder is only read.

Links are not followed. Files and folders whose names begin with a dot are skipped, unless --hidden is
given. The report names each file that cannot be imported, with the reason; then the exit status is 6,
and the other files are imported nevertheless. A name that is not in Unicode's normal form C, as macOS
writes it, is brought into that form. Empty folders have no notes, and are not kept.

A second run adds only what is new. A note that has another content already is kept as it is and
reported, unless --replace is given; what is replaced stays in the history. If --store names a folder
that is not a store yet, a store is created there.`,
		Example: "  memctl note import ~/vault\n  memctl note import ~/vault --into vault --replace",
		Args:    cli.Exactly(1, "a folder"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			into = folderOf(into)
			if into != "" {
				if err := note.CheckPath(into); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--into: %w", err)
				}
			}
			return importFolder(a, cmd, args[0], into, hidden, replace)
		}),
	}
	c.Flags().StringVar(&into, "into", "", "the `folder` of notes into which the files are imported")
	c.Flags().BoolVar(&hidden, "hidden", false, "import also files and folders whose names begin with a dot")
	c.Flags().BoolVar(&replace, "replace", false, "replace notes that have different content")
	return c
}

func importFolder(a *cli.App, cmd *cobra.Command, from, into string, hidden, replace bool) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	if _, err := vfs.ReadRoot(vfs.OS(), from); err != nil {
		return cli.WithFix(fmt.Errorf("%w: the folder to import: %w", varve.ErrInvalid, err), "give the path of a "+
			"folder with files")
	}
	if cli.IsStore(from) {
		return cli.WithFix(fmt.Errorf("%w: %s is a store, and its notes cannot be imported from there",
			varve.ErrInvalid, from), "memctl note export writes the notes of a store into another folder, which can "+
			"be imported")
	}
	how := cli.Write
	if a.Named() != "" {
		how = cli.Create
	}
	report := newMoved(from, dir)
	err = a.WithIn(cmd.Context(), dir, how, nil, func(st *varve.Store) error {
		r := newReading(from, into, hidden, newMoved("", ""), a.Clock)
		return importInto(cmd.Context(), st, r, replace, report, a.Counter("importing"))
	})
	if err == nil || len(report.Problems) > 0 || report.New > 0 {
		tellMoved(a, report, "imported")
	}
	return cli.Resumable(err, "only missing items are added")
}

// importInto imports the files of a folder as notes, and adds the results to report. If replace is true, a file
// replaces a note with other content. count is called to show the progress. The walk over the folder runs concurrently
// with the goroutines that import the files. So the walk counts its results in r.report, and importInto adds them to
// report at the end.
func importInto(ctx context.Context, st *varve.Store, r *reading, replace bool, report *Moved,
	count func(n int)) error {
	t := newTransfer(ctx, report, count)
	r.visit = func(file, path string) error {
		return t.start(func(ctx context.Context) error { return t.importFile(ctx, st, r, file, path, replace) })
	}
	err := r.folder("")
	if werr := t.wait(); err == nil {
		err = werr
	}
	report.add(r.report)
	return err
}

func newMoved(from, to string) *Moved {
	return &Moved{Source: from, Target: to, Problems: []importer.Problem{}, Counts: map[importer.Kind]int{}}
}

// add adds the counts and the problems of other to m. It keeps at most problemsMost problems.
func (m *Moved) add(other *Moved) {
	m.Hidden, m.Empty, m.Refused = m.Hidden+other.Hidden, m.Empty+other.Empty, m.Refused+other.Refused
	for kind, n := range other.Counts {
		m.Counts[kind] += n
	}
	m.Problems = append(m.Problems, other.Problems...)
	slices.SortFunc(m.Problems, func(a, b importer.Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Path, b.Path))
	})
	m.Problems = m.Problems[:min(len(m.Problems), problemsMost)]
}

// transfer imports or exports several files at once.
type transfer struct {
	ctx    context.Context
	group  *errgroup.Group
	room   *semaphore.Weighted
	mu     sync.Mutex
	report *Moved
	count  func(n int)
}

func newTransfer(ctx context.Context, report *Moved, count func(n int)) *transfer {
	t := &transfer{report: report, room: semaphore.NewWeighted(bytesAtOnce), count: count}
	t.group, t.ctx = errgroup.WithContext(ctx)
	t.group.SetLimit(workers)
	return t
}

// start runs f in a goroutine. If as many functions as the number of workers are already running, start first waits
// until one of them ends.
func (t *transfer) start(f func(ctx context.Context) error) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	t.group.Go(func() error { return f(t.ctx) })
	return nil
}

// wait blocks until all started functions have ended, and returns the first error.
func (t *transfer) wait() error {
	err := t.group.Wait()
	t.count(-1)
	return err
}

// done adds 1 to the count n of the report.
func (t *transfer) done(n *int) {
	t.mu.Lock()
	*n++
	t.mu.Unlock()
	t.count(1)
}

func (t *transfer) problem(path string, kind importer.Kind, reason string) {
	t.mu.Lock()
	t.report.problem(path, kind, reason)
	t.mu.Unlock()
	t.count(1)
}

// importFile writes the content of a file as the note at path. If a note with other content exists at path, importFile
// replaces the note if replace is true; otherwise it keeps the note and reports a problem. If only this file cannot be
// imported, importFile reports a problem and returns nil. If it returns an error, the import ends.
func (t *transfer) importFile(ctx context.Context, st *varve.Store, r *reading, file, path string, replace bool) error {
	size := int64(note.MostBytes)
	if info, err := r.fs.Stat(r.file(file)); err == nil {
		size = min(size, info.Size)
	}
	if err := t.room.Acquire(ctx, size); err != nil {
		return err
	}
	defer t.room.Release(size)
	data, info, err := r.read(ctx, file)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		kind, reason := readProblem(err)
		t.problem(file, kind, reason)
		return nil
	}
	count := &t.report.New
	conds := []varve.Cond{varve.IfAbsent()}
	switch n, err := st.Notes().Read(ctx, path); {
	case err == nil && bytes.Equal(n.Content, data):
		t.done(&t.report.Same)
		return nil
	case err == nil && replace:
		count, conds = &t.report.Replaced, []varve.Cond{varve.IfVersion(n.Version)}
	case err == nil:
		t.problem(file, kindKept, "the note has different content: --replace replaces the note")
		return nil
	case !errors.Is(err, varve.ErrNotFound):
		return t.refused(file, err)
	}
	// As for memories: a signal does not interrupt the commit.
	_, err = st.Notes().WriteAt(context.WithoutCancel(ctx), path, data, info.Mtime, conds...)
	switch {
	case err == nil:
		t.done(count)
		return nil
	case errors.Is(err, varve.ErrConflict):
		t.problem(file, kindKept, "another process wrote the note meanwhile")
		return nil
	}
	return t.refused(file, err)
}

// refused handles the error err of importing or reading a file. If err concerns only this file, refused reports a
// problem and returns nil. Otherwise it returns err.
func (t *transfer) refused(file string, err error) error {
	if cli.Classify(err).Code != cli.CodeRefused {
		return err
	}
	t.problem(file, kindRefused, err.Error())
	return nil
}

// tellMoved prints the result of an import or an export, and sets the exit status if some files were refused or
// kept. verb is "imported" or "exported".
func tellMoved(a *cli.App, m *Moved, verb string) {
	if a.Document != nil {
		a.Document.All(m)
	} else {
		a.Say("%s: %s %s into %s: %d new, %d present already, %d different and kept, %d replaced",
			cli.Printable(m.Source), cli.Count(m.New+m.Same+m.Kept+m.Replaced, "note", "notes"), verb,
			cli.Printable(m.Target), m.New, m.Same, m.Kept, m.Replaced)
		var also []string
		if m.Hidden > 0 {
			also = append(also, cli.Count(m.Hidden, "name that begins with a dot", "names that begin with a dot"))
		}
		if m.Empty > 0 {
			also = append(also, cli.Count(m.Empty, "empty folder", "empty folders"))
		}
		if len(also) > 0 {
			a.Say("skipped: %s", strings.Join(also, ", "))
		}
		var kind importer.Kind
		for _, p := range m.Problems {
			if p.Kind != kind {
				kind = p.Kind
				fmt.Fprintf(a.Out, "%s: %d\n", kind, m.Counts[kind])
			}
			fmt.Fprintf(a.Out, "  %s: %s\n", cli.PrintableID(p.Path), cli.Printable(p.Reason))
		}
		if n := m.Kept + m.Refused - len(m.Problems); n > 0 {
			fmt.Fprintf(a.Out, "%d more problems are not listed\n", n)
		}
	}
	if n := m.Kept + m.Refused; n > 0 {
		a.Tell(&cli.Failure{
			Kind: "refused", Message: fmt.Sprintf("%s could not be %s: see the listed problems", cli.Count(n, "entry",
				"entries"), verb),
			Path: m.Source, Fix: "correct the files that the problems name, and repeat the command",
			Code: cli.CodeRefused,
		})
	}
}
