package varve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/internal/document"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/errs"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Version is one version of one memory, or of one assembly.
type Version struct {
	Kind        string    // "memory" or "assembly"
	LSN         uint64    // what the Version of the memory or assembly was
	Time        time.Time // of the commit
	ID          string
	Deleted     bool     // it was deleted; there is no document
	Size        int64    // of the document, in bytes
	ContentHash [32]byte // sha256 of its exact bytes
	Previous    uint64   // the version before it, be it a deletion; 0 when there was none
	FromFile    bool     // the log no longer has it, the file does: whether others came before it is not known
	Document    []byte   // the exact bytes of the file, the caller's own
}

// Decode is the version's document as a Memory. ErrNotFound for a deletion.
func (v *Version) Decode() (Memory, error) {
	if v.Deleted {
		return Memory{}, fmt.Errorf("memory %s: %w: version %d is its deletion", errs.Quote(v.ID), errs.ErrNotFound, v.LSN)
	}
	m, err := memstore.Decode(v.Document, memstore.DecodeOptions{Limits: document.Stored, ID: v.ID})
	if err != nil {
		return Memory{}, fmt.Errorf("memory %s, version %d: %w", errs.Quote(v.ID), v.LSN, err)
	}
	m.Version = v.LSN
	return *m, nil
}

// DecodeAssembly is the document of an assembly's version. ErrNotFound for a deletion.
func (v *Version) DecodeAssembly() (Assembly, error) {
	if v.Deleted {
		return Assembly{}, fmt.Errorf("assembly %s: %w: version %d is its deletion", errs.Quote(v.ID), errs.ErrNotFound, v.LSN)
	}
	a, err := assembly.Decode(v.Document, assembly.DecodeOptions{Limits: document.StoredAssembly, ID: v.ID})
	if err != nil {
		return Assembly{}, fmt.Errorf("assembly %s, version %d: %w", errs.Quote(v.ID), v.LSN, err)
	}
	a.Version = v.LSN
	return *a, nil
}

// History yields the versions of a memory that are still kept, in the order of
// their commits: those in the log and in its archive, and the one that stands in
// the file, however old. Where the first has a Previous or is FromFile, older ones
// were there, or may have been, and are no longer kept.
//
// What cannot be read, damage or a hole in the archive, yields its error and the
// rest goes on. ErrNotFound when nothing is known of such an id. It reads all
// that is kept. The store must not be closed from within the loop.
func (st *Store) History(ctx context.Context, id string) iter.Seq2[Version, error] {
	return st.versionsOf(ctx, st.engine.Kinds.Memories, id)
}

func (st *Store) versionsOf(ctx context.Context, k *engine.Kind, id string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		if err := st.engine.Begun(); err != nil {
			yield(Version{}, err)
			return
		}
		defer st.engine.Ended()
		if !st.history(ctx, k, id, yield) {
			yield(Version{}, fmt.Errorf("%s %s: %w", k.Noun, errs.Quote(id), errs.ErrNotFound))
		}
	}
}

// history says whether it has yielded anything.
func (st *Store) history(ctx context.Context, k *engine.Kind, id string, yield func(Version, error) bool) (any bool) {
	give := func(v Version, err error) bool {
		any = true
		return yield(v, err) && ctx.Err() == nil
	}
	standing, err := st.engine.Find(ctx, k, id, true)
	if err != nil && !errors.Is(err, errs.ErrNotFound) && !give(Version{}, fmt.Errorf("%s %s: %w", k.Noun, errs.Quote(id), err)) {
		return any
	}
	known := err == nil
	oldest, err := st.engine.Log.Past().First(st.engine.Log.Durable())
	if err != nil && !give(Version{}, err) {
		return any
	}
	// What stands in the file comes first when it is older than the log. When it
	// was written in a hole, or its version was made up because the index was made
	// again from the files, it is given all the same.
	told := !known
	if known && standing.LSN < oldest {
		told = true
		if !give(st.standingVersion(k, id, &standing), nil) {
			return any
		}
	}
	want := k.Key(id)
	var last [32]byte
	for e, err := range st.engine.Log.History(ctx, oldest) {
		var v Version
		switch {
		case err != nil:
		case e.Key != want:
			continue
		default:
			v, err = st.versionOf(k, e)
			last, told = v.ContentHash, told || v.LSN == standing.LSN && err == nil
		}
		if !give(v, err) {
			return any
		}
	}
	if !told && sha256.Sum256(standing.Doc) != last {
		give(st.standingVersion(k, id, &standing), nil)
	}
	return any
}

// standingVersion is what the file has.
func (st *Store) standingVersion(k *engine.Kind, id string, v *engine.Version) Version {
	r := Version{Kind: k.Noun, LSN: v.LSN, ID: id, FromFile: true, Size: int64(len(v.Doc)), ContentHash: sha256.Sum256(v.Doc), Document: append([]byte(nil), v.Doc...)}
	if v.Line.Mtime != 0 {
		r.Time = engine.TimeOf(&v.Line).UTC()
	}
	return r
}

func (st *Store) versionOf(k *engine.Kind, e wal.Entry) (Version, error) {
	v := Version{Kind: k.Noun, LSN: e.LSN, Time: e.Time, ID: e.Key[1:], Deleted: e.Delete}
	line, view, err := state.LineIn(&e)
	v.Previous = view.Previous
	if err == nil && e.Delete {
		return v, nil
	}
	if err == nil {
		v.Document, err = st.engine.Codec.Doc(&view, places.StoredMost)
	}
	if err != nil {
		return v, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	v.Size, v.ContentHash = int64(len(v.Document)), sha256.Sum256(v.Document)
	if v.ContentHash != line.ContentHash {
		return v, fmt.Errorf("entry %d: %w: its document is not the one that it names", e.LSN, errs.ErrCorrupt)
	}
	return v, nil
}

// NoVersionError says that a memory or an assembly has no such version. It matches ErrNotFound.
type NoVersionError struct {
	Kind    string // "memory" or "assembly"
	ID      string
	Version uint64 // that was asked for
	Oldest  uint64 // the oldest version of it that is kept, 0 when none is
	Newest  uint64
}

func (e *NoVersionError) Error() string {
	s := fmt.Sprintf("%s %s has no version %d", e.Kind, errs.Quote(e.ID), e.Version)
	switch {
	case e.Oldest == 0:
		return s + "; none of it is kept"
	case e.Oldest == e.Newest:
		return fmt.Sprintf("%s; the only one that is kept is %d", s, e.Oldest)
	}
	return fmt.Sprintf("%s; those that are kept go from %d to %d", s, e.Oldest, e.Newest)
}

// Unwrap makes the error match ErrNotFound.
func (e *NoVersionError) Unwrap() error { return errs.ErrNotFound }

// GetAt returns one version of a memory, by the LSN that its Memory.Version was.
// When there is no such version the error is a *NoVersionError, or, below what
// log and archive still have, a *TruncatedError.
func (st *Store) GetAt(ctx context.Context, id string, lsn uint64) (Version, error) {
	return st.versionAt(ctx, st.engine.Kinds.Memories, id, lsn)
}

func (st *Store) versionAt(ctx context.Context, k *engine.Kind, id string, lsn uint64) (Version, error) {
	if err := st.engine.Begun(); err != nil {
		return Version{}, err
	}
	defer st.engine.Ended()
	if err := st.engine.Sight(ctx); err != nil {
		return Version{}, err
	}
	e, err := st.engine.Log.Past().At(ctx, lsn, st.engine.Log.Durable())
	if err == nil && e.Key == k.Key(id) {
		return st.versionOf(k, e)
	}
	// What stands in the file is kept however old it is.
	if v, ferr := st.engine.Find(ctx, k, id, true); ferr == nil && v.LSN == lsn {
		return st.standingVersion(k, id, &v), nil
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, errs.ErrTruncated) {
		return Version{}, fmt.Errorf("%s %s, version %d: %w", k.Noun, errs.Quote(id), lsn, err)
	}
	missing := &NoVersionError{Kind: k.Noun, ID: id, Version: lsn}
	st.history(ctx, k, id, func(v Version, err error) bool {
		if err == nil {
			if missing.Oldest == 0 {
				missing.Oldest = v.LSN
			}
			missing.Newest = v.LSN
		}
		return ctx.Err() == nil
	})
	if errors.Is(err, errs.ErrTruncated) {
		return Version{}, fmt.Errorf("%w: %w", missing, err)
	}
	return Version{}, missing
}
