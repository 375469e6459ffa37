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
	LSN         uint64    // the Version of the memory or assembly
	Time        time.Time // the clock's time at the commit; that of a later version may be earlier
	ID          string
	Deleted     bool     // the version is a deletion; there is no document
	Size        int64    // bytes of the document
	ContentHash [32]byte // sha256 of its exact bytes
	Previous    uint64   // the previous version, which may be a deletion; 0 if there was none
	// the log no longer has the version, but the file does: whether older versions existed is unknown
	FromFile    bool
	HistoryGone bool // the log with the previous versions is lost: reading one of them returns ErrHistoryGone
	// the version is a copy, made when the version was replaced and only its file still had it: older versions are
	// unknown
	Kept     bool
	Document []byte // the exact bytes of the file; the caller may change them
	Writer   Writer // the writer of the version; Number 0: unknown
	Cause    string // reason why the store wrote the version, see CommitChange; "": a caller requested it
	// Redacted reports that the version was removed on purpose (Admin.PurgeVersion): Document, Size and ContentHash are
	// zero.
	Redacted   bool
	RedactedAt time.Time // time of the redaction
	RedactedBy Writer    // writer that redacted the version; Number 0: unknown
}

// Decode returns the version's document as a Memory. For a deletion the error is ErrNotFound.
func (v *Version) Decode() (Memory, error) { return (*history.Version)(v).Decode() }

// DecodeAssembly returns the version's document as an Assembly. For a deletion the error is ErrNotFound.
func (v *Version) DecodeAssembly() (Assembly, error) { return (*history.Version)(v).DecodeAssembly() }

// History yields the versions of a memory that are still kept, in the order of their commits. These are the versions in
// the log and in its archive, and the version in the memory's file, even if that version is no longer in the log. If
// the first version yielded has a Previous, is FromFile or is Kept, older versions existed, or may have existed, and
// are no longer kept.
//
// If a version cannot be read, because of damage or a hole in the archive, History yields the error and continues with
// the next version. If the id is unknown, the error is ErrNotFound. History reads the whole log and archive. The store
// must not be closed from within the loop.
func (st *Store) History(ctx context.Context, id string) iter.Seq2[Version, error] {
	return st.versionsOf(ctx, st.inner.Engine.Kinds().Memories, id)
}

func (st *Store) versionsOf(ctx context.Context, k *engine.Kind, id string) iter.Seq2[Version, error] {
	return engine.Whole(ctx, func(yield func(Version, error) bool) {
		if err := st.inner.Engine.BeginUse(); err != nil {
			yield(Version{}, err)
			return
		}
		defer st.inner.Engine.EndUse()
		if !st.inner.History.Each(ctx, k, id, func(v history.Version, err error) bool { return yield(Version(v), err) }) {
			yield(Version{}, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), errs.ErrNotFound))
		}
	})
}

// GetAt returns the version of a memory whose Memory.Version was lsn. If the version is redacted, the error is a
// *RedactedError. If there is no such version, the error is a *NoVersionError. If lsn is older than everything in the
// log and the archive, the error is a *TruncatedError.
func (st *Store) GetAt(ctx context.Context, id string, lsn uint64) (Version, error) {
	return st.versionAt(ctx, st.inner.Engine.Kinds().Memories, id, lsn)
}

func (st *Store) versionAt(ctx context.Context, k *engine.Kind, id string, lsn uint64) (Version, error) {
	if err := st.inner.Engine.BeginUse(); err != nil {
		return Version{}, err
	}
	defer st.inner.Engine.EndUse()
	v, err := st.inner.History.At(ctx, k, id, lsn)
	return Version(v), err
}
