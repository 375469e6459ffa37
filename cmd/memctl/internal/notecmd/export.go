package notecmd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
)

func exportCommand(a *cli.App) *cobra.Command {
	var from string
	var replace bool
	c := &cobra.Command{
		Use:   "export DIR",
		Short: "Write notes as files into a folder",
		Long: `Write notes as files into a folder, which is created if it is missing: the note a/b.md becomes the file
DIR/a/b.md, with the same bytes and with the time of its last write. memctl note import reads such a
folder.

Other files in the folder stay. If the file of a note exists with different content, it is kept and
reported; --replace replaces it. Links in the folder are not followed. If this system cannot create a
file with the name of a note, the note is reported. If anything was kept or refused, the exit status is 6.`,
		Example: "  memctl note export ~/copy\n  memctl note export ~/vault --from vault --replace",
		Args:    cli.Exactly(1, "a folder"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			from = folderOf(from)
			if from != "" {
				if err := note.CheckPath(from); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--from: %w", err)
				}
			}
			return exportFolder(a, cmd, from, args[0], replace)
		}),
	}
	c.Flags().StringVar(&from, "from", "", "the `folder` of notes that is exported; all notes by default")
	c.Flags().BoolVar(&replace, "replace", false, "replace files that have different content")
	return c
}

func exportFolder(a *cli.App, cmd *cobra.Command, from, to string, replace bool) error {
	if err := a.NotInStore(filepath.Join(to, "x")); err != nil {
		return err
	}
	return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
		dir := vfs.FolderGiven(to)
		if err := vfs.MkdirAll(vfs.OS(), dir, 0o777); err != nil {
			return cli.WithFix(err, "give the path of a folder that exists or can be created")
		}
		// Without links and "..": the files are below it by their names, too.
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		report := newMoved(cmp.Or(from, "notes"), to)
		t := newTransfer(cmd.Context(), report, a.Counter("exporting"))
		w := &writing{fs: vfs.Below(vfs.OS(), dir), dir: dir, replace: replace, folded: map[string]*exported{},
			made: map[string]bool{}}
		n := 0
		err = func() error {
			for e, err := range st.Notes().List(cmd.Context(), from, 0) {
				if err != nil {
					return err
				}
				n++
				rel := strings.TrimPrefix(strings.TrimPrefix(e.Path, from), "/")
				export := func(ctx context.Context) error { return t.exportNote(ctx, st, w, &e, rel) }
				if err := t.start(export); err != nil {
					return err
				}
			}
			return nil
		}()
		if werr := t.wait(); err == nil {
			err = werr
		}
		if err == nil {
			err = w.sync()
		}
		if err == nil && n == 0 && from != "" {
			return withNoteFix(fmt.Errorf("%w: there is no note in the folder %s", varve.ErrNotFound,
				cli.PrintableID(from)))
		}
		report.add(newMoved("", ""))
		if err == nil || report.New > 0 {
			tellMoved(a, report, "exported")
		}
		return err
	})
}

// writing is the state of an export: the folder into which notes are written as files.
type writing struct {
	fs      vfs.FS
	dir     string
	replace bool
	temps   atomic.Int64
	mu      sync.Mutex
	// the files of this export, by their paths in the form in which a case-insensitive file system compares
	// them
	folded map[string]*exported
	made   map[string]bool // folders that exist already
}

// exported is a file that this export writes.
type exported struct {
	name string
	done chan struct{} // closed when the file is written, or was refused
}

// exportNote writes a note as the file rel in the folder of the export. If only this note cannot be written, exportNote
// reports a problem and returns nil. If it returns an error, the export ends.
func (t *transfer) exportNote(ctx context.Context, st *varve.Store, w *writing, e *varve.NoteEntry, rel string) error {
	size := min(e.Size, note.MostBytes)
	if err := t.room.Acquire(ctx, size); err != nil {
		return err
	}
	defer t.room.Release(size)
	n, err := st.Notes().Read(ctx, e.Path)
	if errors.Is(err, varve.ErrNotFound) {
		return nil // deleted since it was listed
	}
	if err != nil {
		return t.refused(e.Path, err)
	}
	if local := filepath.FromSlash(rel); !filepath.IsLocal(local) || filepath.ToSlash(local) != rel {
		t.problem(e.Path, kindName, "this system cannot create a file with this name")
		return nil
	}
	f := &exported{filepath.Join(w.dir, filepath.FromSlash(rel)), make(chan struct{})}
	defer close(f.done)
	before, err := w.claim(f, rel)
	if err != nil {
		return t.unwritable(e.Path, err)
	}
	if before != nil {
		<-before.done
	}
	count := &t.report.New
	switch was, err := w.fs.Stat(f.name); {
	case err == nil && before != nil && vfs.SameFile(w.fs, f.name, before.name):
		t.problem(e.Path, kindName,
			"on this file system the name of the file is the same as that of "+cli.PrintableID(before.name))
		return nil
	case err == nil && !was.Mode.IsRegular():
		t.problem(e.Path, kindNotFile, vfs.KindOf(was.Mode)+" is at the path of the file: remove or rename it")
		return nil
	case err == nil && w.hasContent(f.name, &was, n.Content):
		t.done(&t.report.Same)
		return nil
	case err == nil && !w.replace:
		t.problem(e.Path, kindKept, "the file has different content: --replace replaces the file")
		return nil
	case err == nil:
		count = &t.report.Replaced
	case !errors.Is(err, fs.ErrNotExist):
		return t.unwritable(e.Path, err)
	}
	give := w.fs.RenameNew
	if count == &t.report.Replaced {
		give = w.fs.Rename
	}
	switch err := w.write(f.name, &n, give); {
	case errors.Is(err, fs.ErrExist):
		t.problem(e.Path, kindKept, "another program has created the file meanwhile: --replace replaces the file")
		return nil
	case err != nil:
		return t.unwritable(e.Path, err)
	}
	t.done(count)
	return nil
}

// claim creates the folders of a file and registers the file under the path rel. If this export has another file
// whose name the file system may treat as equal, such as a name in other letter case, claim returns that file as
// other; otherwise other is nil.
func (w *writing) claim(f *exported, rel string) (other *exported, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.folders(filepath.Dir(f.name)); err != nil {
		return nil, err
	}
	fold := strings.ToLower(norm.NFC.String(rel))
	other = w.folded[fold]
	w.folded[fold] = f
	return other, nil
}

// folders creates a folder of the export and the folders above it.
func (w *writing) folders(dir string) error {
	if w.made[dir] {
		return nil
	}
	if dir == w.dir {
		w.made[dir] = true
		return nil
	}
	err := w.folders(filepath.Dir(dir))
	if err != nil {
		return err
	}
	if err = w.fs.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		var info vfs.Info
		if info, err = w.fs.Stat(dir); err == nil && !info.Mode.IsDir() {
			err = &vfs.NotFolderError{Path: dir, Mode: info.Mode}
		}
	}
	w.made[dir] = err == nil
	return err
}

// sync makes the directory entries of the written files and folders durable.
func (w *writing) sync() error {
	for dir, made := range w.made {
		if made {
			if err := w.fs.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasContent reports whether the file name has the given content. info describes the file.
func (w *writing) hasContent(name string, info *vfs.Info, content []byte) bool {
	if info.Size != int64(len(content)) {
		return false
	}
	data, err := vfs.ReadFile(w.fs, name, note.MostBytes)
	return err == nil && bytes.Equal(data, content)
}

// write writes a note to a temporary file, and calls give to rename the complete file to name.
func (w *writing) write(name string, n *varve.Note, give func(temp, name string) error) error {
	temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".varve-export-%d-%d", os.Getpid(), w.temps.Add(1)))
	_ = w.fs.Remove(temp) // of a process that was killed
	f, err := w.fs.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(n.Content, 0); err == nil {
		err = f.SetMtime(n.UpdatedAt)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = give(temp, name)
	}
	if err != nil {
		_ = w.fs.Remove(temp)
	}
	return err
}

// unwritable handles the error err of writing a file. If err concerns only this file, unwritable reports a problem and
// returns nil. If err is an error of the disk, unwritable returns it.
func (t *transfer) unwritable(path string, err error) error {
	if vfs.IsDiskFull(err) || errors.Is(err, context.Canceled) {
		return err
	}
	t.problem(path, kindRefused, err.Error())
	return nil
}
