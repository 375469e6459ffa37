package backup

import (
	"maps"
	"slices"

	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/worklog"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/working"
)

// Of working memory the backup has a state, and the log the later changes. Together they give the
// state at a moment. Its versions are raised as those of documents are, and its file keeps the UUID
// of the old store, so that the first entry in the new store's log continues from the file at any
// position.

func (r *restore) takeWork(e *wal.Entry) {
	if len(e.Key) > 1 && e.Key[0] == record.Working {
		r.scopes[kind.Scopes.File(e.Key[1:])] = &worklog.Replay{Store: r.info.Store.String()}
	}
}

// scope reads the file of a working-memory scope in the backup, and writes the scope to the restored store. If the log
// has changes of the scope, it only keeps the contents, to which these changes are applied later. It omits a scope
// that was purged.
func (r *restore) scope(name string, data []byte) error {
	f, err := working.DecodeFile(data)
	if err != nil {
		return damagedBackup(name, err)
	}
	if key := f.Scope.Key(); r.purges() && r.gone.HidesAt(string(rune(record.Working))+key, r.info.From.LSN) {
		r.report.Purged++
		return nil
	}
	if s := r.scopes[name]; s != nil {
		s.File = f
		return nil
	}
	return r.putScope(name, f)
}

// playWork applies e, if e is an entry of working memory, to its scope. It omits an entry that the scope's file in the
// backup includes already, or whose data was purged.
func (r *restore) playWork(codec *record.Codec, e *wal.Entry) error {
	if len(e.Key) < 2 || e.Key[0] != record.Working {
		return nil
	}
	s := r.scopes[kind.Scopes.File(e.Key[1:])]
	if s == nil || r.purges() && r.gone.Hides(e.Key, e.LSN) {
		return nil
	}
	before := s.Played
	if err := s.Play(codec, e); err != nil { // an error also if the entries before it are not in the backup
		return err
	}
	if s.Played && !before {
		r.report.FromLog++
	}
	return nil
}

func (r *restore) putScopes() error {
	for _, name := range slices.Sorted(maps.Keys(r.scopes)) {
		if f := r.scopes[name].File; f != nil && !f.State.Empty() {
			if err := r.putScope(name, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *restore) putScope(name string, f *working.File) error {
	f.State.Skip(versionMargin)
	doc, err := f.Encode()
	if err != nil {
		return err
	}
	return r.put(name, doc, f.Time)
}
