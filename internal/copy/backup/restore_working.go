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

// Of working memory the backup has a state, and the log what changed since. Both
// together are the state at a moment. Its versions go up as those of memories do, and
// its file keeps naming the old store: the first entry of the new one rests on it,
// wherever that stands.

func (r *restore) takeWork(e *wal.Entry) {
	if len(e.Key) > 1 && e.Key[0] == record.Working {
		r.scopes[kind.Scopes.File(e.Key[1:])] = &worklog.Replay{Store: r.info.Store.String()}
	}
}

// scope takes one out of the backup.
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

// playWork carries an entry out that the backup's state does not have.
func (r *restore) playWork(codec *record.Codec, e *wal.Entry) error {
	if len(e.Key) < 2 || e.Key[0] != record.Working {
		return nil
	}
	s := r.scopes[kind.Scopes.File(e.Key[1:])]
	if s == nil || r.purges() && r.gone.Hides(e.Key, e.LSN) {
		return nil
	}
	before := s.Played
	if err := s.Play(codec, e); err != nil { // where what it rests on is not in the backup, that says so
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
