package notes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/commit"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/wal"
)

// expiring has the times at which notes expire. They are read from the sidecars from time to time.
type expiring struct {
	mu    sync.Mutex
	read  time.Time
	times map[string]time.Time // times at which notes expire, by path
}

// lookEvery is the interval at which the sidecars are read to find the times at which notes expire. A note is deleted
// an hour after it expires.
const lookEvery = 10 * time.Minute

// Expired reports whether any note had expired at the time cutoff. It implements retention.Expirer.
func (ns *Notes) Expired(ctx context.Context, cutoff time.Time) (bool, error) {
	if !ns.engine.HasHad(ns.kind) {
		return false, nil
	}
	list, err := ns.expiredPaths(ctx, cutoff)
	return len(list) > 0, err
}

// expiredPaths returns the sorted paths of the notes that had expired at the time cutoff.
func (ns *Notes) expiredPaths(ctx context.Context, cutoff time.Time) (paths []string, err error) {
	x := &ns.expiring
	x.mu.Lock()
	defer x.mu.Unlock()
	if age := ns.now().Sub(x.read); age < 0 || age >= lookEvery {
		times := map[string]time.Time{}
		for id, err := range ns.engine.IDs(ctx, ns.kind, engine.Filters{Prefix: note.SidecarOf("")}) {
			if err != nil {
				return nil, err
			}
			v, err := ns.engine.Settled(ctx, ns.kind, id)
			if err != nil {
				continue // deleted meanwhile, or verify tells of it
			}
			if s, err := note.DecodeSidecar(v.Doc); err == nil && !s.Expires.IsZero() {
				times[strings.TrimPrefix(id, note.SidecarOf(""))] = s.Expires
			}
		}
		x.read, x.times = ns.now(), times
	}
	for path, t := range x.times {
		if !t.After(cutoff) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// DeleteExpired deletes notes that had expired at the time cutoff, with their sidecars, and returns the number of
// deleted notes. It deletes at most limit notes in one call. It implements retention.Expirer.
func (ns *Notes) DeleteExpired(ctx context.Context, cutoff time.Time, limit int) (n int, err error) {
	paths, err := ns.expiredPaths(ctx, cutoff)
	if err != nil {
		return 0, err
	}
	for _, path := range paths[:min(len(paths), limit)] {
		s, err := ns.load(ctx, path)
		if err == nil && !s.sidecar.Expires.IsZero() && !s.sidecar.Expires.After(cutoff) {
			changes := []commit.DocumentChange{{ID: note.SidecarOf(path), Delete: true, Was: s.side, Cause: wal.CauseExpired}}
			if s.note.LSN != 0 {
				changes = append(changes,
					commit.DocumentChange{ID: path, Delete: true, Was: s.note, Cause: wal.CauseExpired})
			}
			_, err = ns.commits.ChangeDocuments(ctx, ns.kind, changes)
		}
		if err != nil && !errors.Is(err, errs.ErrConflict) && !errors.Is(err, errs.ErrInvalid) {
			return n, failed(path, err)
		}
		if err == nil {
			n++
		}
		ns.expiring.mu.Lock()
		delete(ns.expiring.times, path)
		ns.expiring.mu.Unlock()
	}
	return n, nil
}
