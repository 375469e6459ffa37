package verify

import (
	"errors"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
)

// A memory that was deleted and written again begins a new chain of versions: its record has no
// predecessor. Until this version is flushed, the memory's file may still have a version from
// before the deletion, which only a scan of the log finds. Memories whose file looks wrong perhaps
// for this reason alone are collected, and checked together in one scan.

// began reports whether list goes back to the creation of the document, and the version that created the document is
// not flushed.
func began(list []Standing, flushed uint64) bool {
	n := len(list)
	return n >= 2 && list[n-1].Absent && list[n-1].Version == 0 && list[n-2].Version >= flushed
}

// revived checks files that may have a version from before the deletion of their document. It compares each file with
// all versions of the document in the log.
func (v *Run) revived() error {
	suspects := v.suspects
	v.suspects = nil
	for try := 0; try < tries && len(suspects) > 0; try++ {
		flushed, from := v.Source.Log.Flushed(), v.Past.Oldest()
		files := make(map[string]*File, len(suspects)) // by key
		versions := make(map[string][]Standing, len(suspects))
		for _, s := range suspects {
			k := kind.At(s.Path)
			f := v.Read(k, k.FileName(s.ID))
			f.Data = nil
			files[k.Key(s.ID)] = &f
			set, err := v.inSet(k, s.ID)
			if err != nil {
				set = Standing{Absent: true}
			}
			versions[k.Key(s.ID)] = []Standing{set}
		}
		if err := v.Source.CatchUp(v.ctx); err != nil {
			return err
		}
		err := v.collect(from, versions)
		if errors.Is(err, errs.ErrTruncated) {
			continue
		}
		if err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
		left := suspects[:0]
		for _, s := range suspects {
			if key := kind.At(s.Path).Key(s.ID); !fits(files[key], versions[key], flushed) {
				left = append(left, s)
			}
		}
		suspects = left
	}
	for _, s := range suspects {
		if j := v.Document(kind.At(s.Path), s.ID, nil, 0); j.Finding != nil { // still not flushed
			if err := v.report(*j.Finding); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect reads the log, beginning with segment from. The keys of versions are keys of documents; collect appends each
// version of such a document to the list of its key.
func (v *Run) collect(from uint64, versions map[string][]Standing) error {
	for e, err := range v.Source.Log.Scan(v.ctx, from) {
		if err != nil {
			return err
		}
		list, ok := versions[e.Key]
		if !ok {
			continue
		}
		line, _, _ := state.LineIn(&e) // no file matches an entry that cannot be read
		versions[strings.Clone(e.Key)] = append(list, Standing{Version: e.LSN, Absent: e.Delete, Line: line})
	}
	return nil
}

// fits reports whether a file has the newest version below flushed, or any later version. The missing file of a deleted
// version also fits.
func fits(f *File, list []Standing, flushed uint64) bool {
	first := 0
	for i, s := range list {
		if s.Version < flushed {
			first = i
		}
	}
	for _, s := range list[first:] {
		if s.Absent && places.Gone(f.Err) || !s.Absent && f.Has(&s.Line) {
			return true
		}
	}
	return false
}
