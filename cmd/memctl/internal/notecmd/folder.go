package notecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/importer"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
)

// The kinds of problems with one file that an import or an export reports.
const (
	kindLink     importer.Kind = "link"
	kindNotFile  importer.Kind = "not a file"
	kindName     importer.Kind = "name"
	kindTooLarge importer.Kind = "too large"
	kindChanged  importer.Kind = "changed meanwhile"
	kindUnread   importer.Kind = "unreadable"
	kindKept     importer.Kind = "kept"
	kindRefused  importer.Kind = "refused"
	kindStore    importer.Kind = "store"
)

// Moved is the result of an import or an export of notes.
type Moved struct {
	Source string `json:"source"`
	Target string `json:"target"`
	New    int    `json:"new"`
	Same   int    `json:"same"` // existed already, with the same content
	Kept   int    `json:"kept"` // existed already with other content, and were kept
	// existed already with other content, and were replaced (--replace)
	Replaced int `json:"replaced"`
	Refused  int `json:"refused"` // not imported or exported; Problems has the reasons
	// files and folders that were skipped because their names begin with a dot
	Hidden   int                   `json:"hidden"`
	Empty    int                   `json:"empty_folders"`
	Problems []importer.Problem    `json:"problems"` // the first problems, at most problemsMost
	Counts   map[importer.Kind]int `json:"counts"`
}

// problemsMost is the maximum number of problems in a report.
const problemsMost = 10_000

func (m *Moved) problem(path string, kind importer.Kind, reason string) {
	if m.Counts[kind]++; kind == kindKept {
		m.Kept++
	} else {
		m.Refused++
	}
	if len(m.Problems) < problemsMost {
		m.Problems = append(m.Problems, importer.Problem{Path: path, Kind: kind, Reason: reason, LeftOut: true})
	}
}

// reading is the walk over the folder that is imported.
type reading struct {
	fs     vfs.FS // the folder and what is below it; it follows no link
	dir    string
	into   string // the folder of notes into which files are imported, "" for the top
	hidden bool   // also import files whose names begin with a dot
	report *Moved
	clock  func() time.Time
	taken  map[string]string // the imported files, by the paths of their notes
	visit  func(file, path string) error
}

func newReading(dir, into string, hidden bool, report *Moved, clock func() time.Time) *reading {
	dir = vfs.FolderGiven(dir)
	return &reading{vfs.Below(vfs.OS(), dir), dir, into, hidden, report, clock, map[string]string{}, nil}
}

// folder imports the files of a folder and of all folders in it. rel is the path of the folder below the imported
// folder.
func (r *reading) folder(rel string) error {
	list, err := vfs.ReadTypes(r.fs, r.file(rel))
	switch {
	case err != nil && rel == "":
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrNotFolder):
		r.report.problem(rel, kindChanged, "the folder was removed or replaced while it was read")
		return nil
	case err != nil:
		r.report.problem(rel, kindUnread, err.Error())
		return nil
	}
	if len(list) == 0 && rel != "" {
		r.report.Empty++
	}
	// Of two names that differ only in their Unicode form, that of the note is taken.
	slices.SortFunc(list, func(a, b vfs.Entry) int {
		if n, m := norm.NFC.IsNormalString(a.Name), norm.NFC.IsNormalString(b.Name); n != m {
			return map[bool]int{true: -1, false: 1}[n]
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, e := range list {
		if err := r.entry(filepath.Join(rel, e.Name), e); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) entry(rel string, e vfs.Entry) error {
	switch {
	case strings.HasPrefix(e.Name, ".") && !r.hidden:
		r.report.Hidden++
		return nil
	case e.Type&fs.ModeSymlink != 0:
		r.report.problem(rel, kindLink, "links are not followed")
		return nil
	case e.Type.IsDir():
		if cli.IsStore(r.file(rel)) {
			r.report.problem(rel, kindStore, "the folder of a store is not imported as notes")
			return nil
		}
		if path := r.path(rel); strings.Count(path, "/")+1 >= note.MostSegments { // no file in it has a path
			return r.refuseIn(rel, path+"/x")
		}
		return r.folder(rel)
	case !e.Type.IsRegular():
		r.report.problem(rel, kindNotFile, vfs.KindOf(e.Type)+", not a regular file")
		return nil
	}
	path := r.path(rel)
	if err := note.CheckPath(path); err != nil {
		reason := err.Error()
		if !utf8.ValidString(rel) {
			reason = "the name is not valid UTF-8: rename the file"
		}
		r.report.problem(rel, kindName, reason)
		return nil
	}
	if other, ok := r.taken[path]; ok {
		r.report.problem(rel, kindName, fmt.Sprintf("the name differs from that of %s only in its Unicode form: rename one",
			cli.PrintableID(other)))
		return nil
	}
	r.taken[path] = rel
	return r.visit(rel, path)
}

// refuseIn imports the folder rel, whose notes would have paths below path. If no note can have such a path, refuseIn
// instead reports one problem with the folder.
func (r *reading) refuseIn(rel, path string) error {
	err := note.CheckPath(path)
	if err == nil {
		return r.folder(rel)
	}
	r.report.problem(rel, kindName, err.Error())
	return nil
}

// file returns the full path of a file, given by its path below the imported folder.
func (r *reading) file(rel string) string { return filepath.Join(r.dir, rel) }

// path returns the path of the note that the file becomes. rel is the path of the file below the imported folder.
func (r *reading) path(rel string) string {
	return path.Join(r.into, norm.NFC.String(filepath.ToSlash(rel)))
}

// errChanging is the error for a file that another program writes while it is read.
var errChanging = errors.New("the file changes while it is read: import again when no program writes it")

// How long a file that was just written must remain unchanged before it is imported. A program that saves a
// file in place first empties it and then writes it.
const (
	quiet      = 200 * time.Millisecond
	quietEmpty = 2 * time.Second // for an empty file
	mostWait   = 5 * time.Second
)

// read returns the content of the file rel, and its size, mode and times.
func (r *reading) read(ctx context.Context, rel string) (data []byte, info vfs.Info, err error) {
	for began := r.clock(); ; {
		data, info, err = readStable(r.fs, r.file(rel))
		if err != nil && !errors.Is(err, errChanging) {
			return data, info, err
		}
		age, wait := r.clock().Sub(info.Mtime), quiet
		if info.Size == 0 {
			wait = quietEmpty
		}
		if err == nil && (age >= wait || age < 0) { // a time in the future is not that of a program that writes now
			return data, info, nil
		}
		if r.clock().Sub(began) > mostWait {
			return nil, info, errChanging
		}
		select {
		case <-ctx.Done():
			return nil, info, ctx.Err()
		case <-time.After(min(max(wait-age, quiet/10), wait)):
		}
	}
}

func readStable(files vfs.FS, name string) ([]byte, vfs.Info, error) {
	f, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, vfs.Info{}, err
	}
	defer f.Close()
	was, err := f.Stat()
	if err != nil {
		return nil, was, err
	}
	if was.Size > note.MostBytes {
		return nil, was, fmt.Errorf("%w: the file has %d bytes, but a note has at most %d", errTooLarge, was.Size,
			note.MostBytes)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, note.MostBytes+1))
	if err != nil {
		return nil, was, err
	}
	is, err := f.Stat()
	if err == nil && (is.Size != was.Size || !is.Mtime.Equal(was.Mtime) || int64(len(data)) != is.Size) {
		err = errChanging
	}
	return data, is, err
}

var errTooLarge = errors.New("too large")

// readProblem returns the kind and the reason of the problem with a file that could not be read.
func readProblem(err error) (kind importer.Kind, reason string) {
	switch {
	case errors.Is(err, errTooLarge):
		return kindTooLarge, err.Error()
	case errors.Is(err, errChanging):
		return kindChanged, err.Error()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrNotRegular), errors.Is(err, vfs.ErrNotFolder):
		return kindChanged, "the file was removed or replaced while the folder was read"
	}
	return kindUnread, err.Error()
}
