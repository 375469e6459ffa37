package heal

import (
	"errors"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
)

// A memory that was deleted and written again begins a chain of its own: its
// record says that nothing came before. As long as this is not flushed, its file
// may still hold a version from before the deletion, which only a scan of the
// log finds. Those whose file looks wrong for this reason alone wait for one
// scan for all of them.

// began says that a chain begins with a version that is not flushed.
func began(list []standing, flushed uint64) bool {
	n := len(list)
	return n >= 2 && list[n-1].absent && list[n-1].version == 0 && list[n-2].version >= flushed
}

// revived judges the suspects by all versions that the log has of them.
func (v *verify) revived() error {
	suspects := v.suspects
	v.suspects = nil
	for try := 0; try < tries && len(suspects) > 0; try++ {
		flushed, from := v.s.Log.Flushed(), v.past.Oldest()
		files := make(map[string]*file, len(suspects)) // by key
		versions := make(map[string][]standing, len(suspects))
		for _, s := range suspects {
			k := document.At(s.Path)
			f := v.read(k, docfile.FileName(s.ID))
			f.data = nil
			files[k.Key(s.ID)] = &f
			set, err := v.inSet(k, s.ID)
			if err != nil {
				set = standing{absent: true}
			}
			versions[k.Key(s.ID)] = []standing{set}
		}
		if err := v.s.Sight(v.ctx); err != nil {
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
			if key := document.At(s.Path).Key(s.ID); !fits(files[key], versions[key], flushed) {
				left = append(left, s)
			}
		}
		suspects = left
	}
	for _, s := range suspects {
		if j := v.document(document.At(s.Path), s.ID, nil, 0); j.finding != nil { // not flushed meanwhile
			if err := v.report(*j.finding); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect appends the versions that the log has of some documents, by key.
func (v *verify) collect(from uint64, versions map[string][]standing) error {
	for e, err := range v.s.Log.Scan(v.ctx, from) {
		if err != nil {
			return err
		}
		list, ok := versions[e.Key]
		if !ok {
			continue
		}
		line, _, _ := state.LineIn(&e) // one that cannot be read is what no file has
		versions[strings.Clone(e.Key)] = append(list, standing{version: e.LSN, absent: e.Delete, line: line})
	}
	return nil
}

// fits says whether a file holds the newest version below flushed or one above it.
func fits(f *file, list []standing, flushed uint64) bool {
	first := 0
	for i, s := range list {
		if s.version < flushed {
			first = i
		}
	}
	for _, s := range list[first:] {
		if s.absent && places.Gone(f.err) || !s.absent && f.has(&s.line) {
			return true
		}
	}
	return false
}
