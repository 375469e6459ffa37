package varve

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/history"
	"github.com/varve-db/varve/internal/human"
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
func (v *Version) Decode() (Memory, error) { return (*history.Version)(v).Decode() }

// DecodeAssembly is the document of an assembly's version. ErrNotFound for a deletion.
func (v *Version) DecodeAssembly() (Assembly, error) { return (*history.Version)(v).DecodeAssembly() }

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
		if !st.history.Each(ctx, k, id, func(v history.Version, err error) bool { return yield(Version(v), err) }) {
			yield(Version{}, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), errs.ErrNotFound))
		}
	}
}

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
	v, err := st.history.At(ctx, k, id, lsn)
	return Version(v), err
}
