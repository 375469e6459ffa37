package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
)

// Get reads the newest version of a document, from the cache if possible. If the document does not exist or has
// expired, the error is errs.ErrNotFound.
func (eng *Engine) Get(ctx context.Context, k *Kind, id string) (Version, error) {
	if err := eng.BeginUse(); err != nil {
		return Version{}, err
	}
	defer eng.EndUse()
	if err := ctx.Err(); err != nil {
		return Version{}, err
	}
	v, err := eng.Load(ctx, k, id)
	if err == nil && v.Expired(eng.env.Clock()) {
		err = errs.ErrNotFound
	}
	if err != nil {
		return v, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)
	}
	return v, nil
}

// Decode decodes v, a version of the memory id, into a memory. An error means that the stored bytes are damaged, or
// that they have a newer format (errs.ErrNewerFormat).
func (eng *Engine) Decode(id string, v Version) (memstore.Memory, error) {
	m, err := memstore.Decode(v.Doc,
		memstore.DecodeOptions{Limits: kind.Stored, Location: eng.env.NaiveTimes, ID: id, Owned: !eng.caches(v.Doc)})
	if err != nil {
		return memstore.Memory{}, eng.undecoded(eng.kinds.Memories, id, v.LSN, err)
	}
	m.Version, m.By = v.LSN, v.Line.By
	v.times(&m.CreatedAt, &m.UpdatedAt)
	return *m, nil
}

// times sets created and updated to the times in the version's index line. Before the call they have the times in the
// document. The two differ for an edit by hand: the edited file is adopted unchanged, so only the index line has the
// times of the adoption.
func (v *Version) times(created, updated *time.Time) {
	if v.Line.UpdatedAt.IsZero() || v.Line.UpdatedAt.Equal(*updated) && v.Line.CreatedAt.Equal(*created) {
		return
	}
	*created, *updated = v.Line.CreatedAt, v.Line.UpdatedAt
}

// undecoded returns the error to report for err, an error of decoding the version at position pos. The stored
// bytes of the version are the bytes that were written. So undecoded reports damage, not invalid input, unless err
// is errs.ErrNewerFormat.
func (eng *Engine) undecoded(k *Kind, id string, pos wal.LSN, err error) error {
	if errors.Is(err, errs.ErrNewerFormat) {
		return fmt.Errorf("%s %s, version %d: %w", k.Noun, human.Quote(id), pos, err)
	}
	return fmt.Errorf("%s %s, version %d: %w", k.Noun, human.Quote(id), pos,
		&errs.CorruptionError{Path: k.File(id), LSN: pos, Offset: -1, Err: err})
}

// DecodeAssembly decodes v, a version of the assembly id, into an assembly. Errors are as for Decode.
func (eng *Engine) DecodeAssembly(id string, v Version) (assembly.Assembly, error) {
	a, err := assembly.Decode(v.Doc,
		assembly.DecodeOptions{Limits: kind.StoredAssembly, Location: eng.env.NaiveTimes, ID: id})
	if err != nil {
		return assembly.Assembly{}, eng.undecoded(eng.kinds.Assemblies, id, v.LSN, err)
	}
	a.Version, a.By = v.LSN, v.Line.By
	v.times(&a.CreatedAt, &a.UpdatedAt)
	return *a, nil
}
