package importer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/vfs"
)

// errStop ends a run because the consumer has ended the iteration.
var errStop = errors.New("stop")

// run is one pass over a source.
type run struct {
	*Source
	ctx     context.Context
	yield   func(Entry, error) bool
	stopped bool
	seen    map[string]origin // ids of memories that were yielded
	groups  map[string]origin // ids of assemblies that were yielded
	mapped  []mapping
	numbers map[key]int64 // numbers of the vectors
	vectors vectors
	lacking []lack // assemblies with members that were not yielded before them
	census  census
}

// origin identifies where a memory was read from, to distinguish two copies of one memory from two different
// memories with the same id.
type origin struct {
	sum  [16]byte // hash of the bytes from which the memory was read
	path string
}

func sum(data []byte) [16]byte {
	full := sha256.Sum256(data)
	return [16]byte(full[:16])
}

func (r *run) emit(e Entry) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if !r.yield(e, nil) {
		r.stopped = true
		return errStop
	}
	return nil
}

func (r *run) problem(p Problem) error { return r.emit(Entry{Problem: &p}) }

// item yields found, a memory or an assembly, unless its id was already yielded. raw has the bytes from which
// found was read. taken reports whether found was yielded.
func (r *run) item(found Item, raw []byte) (taken bool, err error) {
	here := origin{sum(raw), found.Path}
	what, seen := "memory", r.seen
	if found.Assembly {
		what, seen = "assembly", r.groups
	}
	if was, ok := seen[found.ID]; ok {
		reason, other := "a second copy of "+was.path+", skipped", was.sum != here.sum
		if was.sum != here.sum {
			reason = "another " + what + " with the id of " + was.path +
				", which was imported; change the id to import this one"
		}
		return false, r.problem(Problem{Path: found.Path, ID: found.ID, Kind: KindDuplicate, Reason: reason,
			LeftOut: other})
	}
	seen[found.ID] = here
	found.VectorID = r.numberOf(&found)
	r.census.item(&found)
	told, err := r.fromVectors(&found)
	if err != nil {
		return true, err
	}
	if err := r.emit(Entry{Item: &found}); err != nil || told == nil {
		return true, err
	}
	return true, r.problem(*told)
}

// errTooLarge is the error of the method read for a file that is larger than Options.MaxBytes.
var errTooLarge = errors.New("too large")

// open opens a regular file of the source. If the name is that of a pipe, open returns an error and does not wait for
// the pipe.
func (r *run) open(name string) (*os.File, error) { return vfs.OpenIn(r.root, name) }

// read returns the content of a file.
func (r *run) read(name string) ([]byte, error) {
	f, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(int(min(info.Size(), int64(r.opts.MaxBytes))) + bytes.MinRead)
	if n, err := io.Copy(&buf, io.LimitReader(f, int64(r.opts.MaxBytes)+1)); err != nil {
		return nil, err
	} else if n > int64(r.opts.MaxBytes) {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, r.opts.MaxBytes)
	}
	return buf.Bytes(), nil
}

// document parses a whole file as one JSON object, with corrections if necessary. If the file
// cannot be parsed, document reports that, and doc is nil.
func (r *run) document(name string) (doc *object, raw []byte, mends []string, err error) {
	raw, err = r.read(name)
	if err != nil {
		return nil, nil, nil, r.problem(Problem{Path: name, Kind: readKind(err), Reason: err.Error()})
	}
	doc, mends, err = parse(raw)
	if err != nil {
		return nil, nil, nil, r.problem(Problem{Path: name, Kind: KindCorrupt, Reason: err.Error()})
	}
	return doc, raw, mends, nil
}

func readKind(err error) Kind {
	if errors.Is(err, errTooLarge) {
		return KindTooLarge
	}
	return KindUnread
}

// list returns the paths of the files and of the folders in a folder, both sorted. A link counts as a file; whether it
// may be followed is decided when it is opened.
func (r *run) list(dir string) (files, folders []string, err error) {
	f, err := vfs.OpenFolderIn(r.root, dir)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(1024)
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); e.IsDir() {
				folders = append(folders, name)
			} else {
				files = append(files, name)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(files)
	slices.Sort(folders)
	return files, folders, nil
}

// tree returns all files below a folder, sorted by path. It reports folders that cannot be listed,
// and skips hidden folders (.git).
func (r *run) tree(dir string) ([]string, error) {
	files, folders, err := r.list(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, r.problem(Problem{Path: dir, Kind: KindUnread, Reason: err.Error()})
	}
	for _, sub := range folders {
		if strings.HasPrefix(path.Base(sub), ".") {
			continue
		}
		below, err := r.tree(sub)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, r.ctx.Err()
}
