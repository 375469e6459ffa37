package history

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/varve-db/varve/assembly"
	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/memstore"
	"github.com/varve-db/varve/wal"
	"github.com/varve-db/varve/writer"
)

// History reads earlier versions of documents from log, archive and files.
type History struct{ engine *engine.Engine }

// New returns the history of a store.
func New(eng *engine.Engine) *History { return &History{engine: eng} }

// Version describes one version of a document, such as a memory or an assembly.
type Version struct {
	Kind        string    // "memory" or "assembly"
	LSN         uint64    // the version number: Memory.Version or Assembly.Version
	Time        time.Time // the clock's time at the commit; a later version may have an earlier time
	ID          string
	Deleted     bool     // the version is a deletion; there is no document
	Size        int64    // size of the document in bytes
	ContentHash [32]byte // sha256 of the document's exact bytes
	Previous    uint64   // the previous version, which may be a deletion; 0: this is the first version
	// The version is in the file and no longer in the log: whether there were earlier versions is unknown.
	FromFile    bool
	HistoryGone bool // the log that had the earlier versions is gone: see errs.HistoryGoneError
	// The version is a copy that was kept when the version was replaced: whether there were earlier versions is
	// unknown.
	Kept       bool
	Document   []byte        // the exact bytes of the document's file; the caller owns them
	Writer     writer.Writer // the writer; Number 0: unknown
	Cause      string        // reason why the store wrote the version, see Changed; "": a caller requested it
	Redacted   bool          // the content was removed on purpose: Document, Size and ContentHash are zero
	RedactedAt time.Time     // when the content was redacted
	RedactedBy writer.Writer // writer that redacted the content; Number 0: unknown
}

// Decode returns the version's document as a Memory. For a deletion, the error is errs.ErrNotFound; for a redacted
// version it is *errs.RedactedError.
func (v *Version) Decode() (memstore.Memory, error) {
	if v.Redacted {
		return memstore.Memory{}, v.redactedError()
	}
	if v.Deleted {
		return memstore.Memory{}, fmt.Errorf("memory %s: %w: version %d is a deletion", human.Quote(v.ID),
			errs.ErrNotFound, v.LSN)
	}
	m, err := memstore.Decode(v.Document, memstore.DecodeOptions{Limits: kind.Stored, ID: v.ID})
	if err != nil {
		return memstore.Memory{}, fmt.Errorf("memory %s, version %d: %w", human.Quote(v.ID), v.LSN, err)
	}
	m.Version, m.By = v.LSN, v.Writer.Number
	return *m, nil
}

// DecodeAssembly returns the version's document as an Assembly. For a deletion, the error is errs.ErrNotFound; for a
// redacted version it is *errs.RedactedError.
func (v *Version) DecodeAssembly() (assembly.Assembly, error) {
	if v.Redacted {
		return assembly.Assembly{}, v.redactedError()
	}
	if v.Deleted {
		return assembly.Assembly{}, fmt.Errorf("assembly %s: %w: version %d is a deletion", human.Quote(v.ID),
			errs.ErrNotFound, v.LSN)
	}
	a, err := assembly.Decode(v.Document, assembly.DecodeOptions{Limits: kind.StoredAssembly, ID: v.ID})
	if err != nil {
		return assembly.Assembly{}, fmt.Errorf("assembly %s, version %d: %w", human.Quote(v.ID), v.LSN, err)
	}
	a.Version, a.By = v.LSN, v.Writer.Number
	return *a, nil
}

// Each yields the versions of a document, the oldest first, and reports whether it yielded anything.
func (h *History) Each(ctx context.Context, k *engine.Kind, id string, yield func(Version, error) bool) (any bool) {
	masked := h.mask(k, id, yield)
	any = h.eachUnmasked(ctx, k, id, masked.give)
	return masked.end(ctx) || any
}

func (h *History) eachUnmasked(ctx context.Context, k *engine.Kind, id string,
	yield func(Version, error) bool) (any bool) {
	give := func(v Version, err error) bool {
		any = true
		return yield(v, err) && ctx.Err() == nil
	}
	begun, err := h.engine.Log().Past().Begun(h.engine.Log().Durable())
	if err != nil && !give(Version{}, err) {
		return any
	}
	give = func(v Version, err error) bool {
		any = true
		v.HistoryGone = err == nil && begun > 0 && (v.FromFile || v.Kept || v.Previous != 0 && v.Previous < begun)
		return yield(v, err) && ctx.Err() == nil
	}
	standing, err := h.engine.Find(ctx, k, id, true)
	if err != nil && !errors.Is(err, errs.ErrNotFound) &&
		!give(Version{}, fmt.Errorf("%s %s: %w", k.Noun, human.Quote(id), err)) {
		return any
	}
	known := err == nil
	oldest, err := h.engine.Log().Past().First(h.engine.Log().Durable())
	if err != nil && !give(Version{}, err) {
		return any
	}
	// The version in the file comes first if it is older than the log. If it was written in a hole of the log,
	// or if its version was made up when the index was rebuilt from the files, it is yielded nevertheless.
	told := !known
	type one struct {
		lsn  uint64
		hash [32]byte
	}
	keptAs, given := record.KeptKey(k.Key(id)), map[one]bool{}
	if known && standing.LSN < oldest {
		told = true
		v := h.standingVersion(k, id, &standing)
		given[one{v.LSN, v.ContentHash}] = true
		if !give(v, nil) {
			return any
		}
	}
	want := k.Key(id)
	var last [32]byte
	of := func(key []byte) bool { return string(key) == want || string(key) == keptAs }
	for e, err := range h.engine.Log().Past().EntriesOf(ctx, wal.Mark{LSN: oldest}, h.engine.Log().Durable(), of) {
		var v Version
		switch {
		case err != nil:
		case e.Key == keptAs:
			// A refused or repeated commit may have written another copy of the version; and if a repair has
			// restored the log, it may have the original.
			if v, err = h.keptVersion(k, e); err == nil && given[one{v.LSN, v.ContentHash}] {
				continue
			}
			given[one{v.LSN, v.ContentHash}] = true
		default:
			v, err = h.versionOf(k, e)
			given[one{v.LSN, v.ContentHash}] = true
			last, told = v.ContentHash, told || v.LSN == standing.LSN && err == nil
		}
		if !give(v, err) {
			return any
		}
	}
	if !told && sha256.Sum256(standing.Doc) != last {
		give(h.standingVersion(k, id, &standing), nil)
	}
	return any
}

// Readable yields the readable versions of several documents, in one pass over log and archive. These include copies
// that were kept when a version was replaced. The current version of each document is yielded before all others.
func Readable(ctx context.Context, h *History, k *engine.Kind, ids []string, yield func(v *Version)) error {
	wanted := map[string]bool{}
	for _, id := range ids {
		wanted[k.Key(id)], wanted[record.KeptKey(k.Key(id))] = true, true
		if standing, err := h.engine.Find(ctx, k, id, true); err == nil {
			v := h.standingVersion(k, id, &standing)
			yield(&v)
		}
	}
	durable := h.engine.Log().Durable()
	oldest, err := h.engine.Log().Past().First(durable)
	if err != nil {
		return ctx.Err() // what cannot be read is not yielded
	}
	for e, err := range h.engine.Log().Past().EntriesOf(ctx, wal.Mark{LSN: oldest}, durable,
		func(key []byte) bool { return wanted[string(key)] }) {
		if err == nil && ctx.Err() == nil && !e.Delete {
			of := h.versionOf
			if e.Key[0] == record.Kept {
				of = h.keptVersion
			}
			if v, err := of(k, e); err == nil {
				yield(&v)
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return ctx.Err()
}

// standingVersion returns v, the current version of a document, as a Version. v was read from the document's file.
func (h *History) standingVersion(k *engine.Kind, id string, v *engine.Version) Version {
	r := Version{Kind: k.Noun, LSN: v.LSN, ID: id, FromFile: true, Size: int64(len(v.Doc)),
		ContentHash: sha256.Sum256(v.Doc), Document: append([]byte(nil), v.Doc...)}
	if v.Line.Mtime != 0 {
		r.Time = h.timeOf(&v.Line)
	}
	r.Writer = h.engine.Writer(v.Line.By, v.LSN)
	return r
}

// timeOf returns the commit time of a version of which only the file, or a copy of the file, is left. This is normally
// the file's time. If the clock was ahead at an earlier commit, the file's time can be later than now; then timeOf
// returns the time in the index line instead.
func (h *History) timeOf(line *index.Entry) time.Time {
	at := engine.TimeOf(line)
	if now := h.engine.Env().Clock(); at.After(now) && !line.UpdatedAt.IsZero() && !line.UpdatedAt.After(now) {
		at = line.UpdatedAt
	}
	return at.UTC()
}

func (h *History) versionOf(k *engine.Kind, e wal.Entry) (Version, error) {
	v := Version{Kind: k.Noun, LSN: e.LSN, Time: e.Reading, ID: e.Key[1:], Deleted: e.Delete,
		Writer: h.engine.Writer(e.Writer, e.LSN), Cause: CauseOf(e.Cause)}
	line, view, err := state.LineIn(&e)
	v.Previous = view.Previous
	if err == nil && e.Delete {
		return v, nil
	}
	if err == nil {
		v.Document, err = h.engine.Codec().Doc(&view, places.StoredMost)
	}
	if err != nil {
		return v, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	v.Size, v.ContentHash = int64(len(v.Document)), sha256.Sum256(v.Document)
	if v.ContentHash != line.ContentHash {
		return v, fmt.Errorf("entry %d: %w: content hash mismatch", e.LSN, errs.ErrCorrupt)
	}
	return v, nil
}

// keptVersion returns the version whose copy is in a log entry. The copy was kept when the version was replaced.
func (h *History) keptVersion(k *engine.Kind, e wal.Entry) (Version, error) {
	line, doc, err := state.KeptDocument(h.engine.Codec(), &e, places.StoredMost)
	v := Version{Kind: k.Noun, LSN: line.Version, Kept: true, ID: e.Key[2:], Document: doc, Size: int64(len(doc)),
		ContentHash: line.ContentHash}
	if err != nil {
		return v, fmt.Errorf("entry %d: %w", e.LSN, err)
	}
	v.Time, v.Writer = h.timeOf(&line), h.engine.Writer(line.By, line.Version)
	return v, nil
}

// At returns one version of a document. If the version does not exist, the error is *errs.NoVersionError; if it was
// redacted, *errs.RedactedError.
func (h *History) At(ctx context.Context, k *engine.Kind, id string, lsn uint64) (Version, error) {
	if err := h.engine.CatchUp(ctx); err != nil {
		return Version{}, err
	}
	if row, is, err := h.redaction(k, id, lsn); is || err != nil {
		if err == nil {
			v := h.redacted(k, id, &row)
			err = v.redactedError()
		}
		return Version{}, err
	}
	e, err := h.engine.Log().Past().At(ctx, lsn, h.engine.Log().Durable())
	if err == nil && e.Key == k.Key(id) {
		return h.versionOf(k, e)
	}
	// The version in the file is kept, however old it is.
	if v, ferr := h.engine.Find(ctx, k, id, true); ferr == nil && v.LSN == lsn {
		return h.standingVersion(k, id, &v), nil
	}
	missing := &errs.NoVersionError{Kind: k.Noun, ID: id, Version: lsn}
	var kept *Version
	h.Each(ctx, k, id, func(v Version, err error) bool {
		if err == nil {
			if v.Kept && v.LSN == lsn {
				kept = &v
				return false
			}
			if missing.Oldest == 0 {
				missing.Oldest = v.LSN
			}
			missing.Newest = v.LSN
		}
		return ctx.Err() == nil
	})
	if kept != nil {
		return *kept, nil
	}
	if err != nil && !errors.Is(err, errs.ErrNotFound) && !errors.Is(err, errs.ErrTruncated) {
		return Version{}, fmt.Errorf("%s %s, version %d: %w", k.Noun, human.Quote(id), lsn, err)
	}
	if errors.Is(err, errs.ErrTruncated) {
		return Version{}, fmt.Errorf("%w: %w", missing, err)
	}
	return Version{}, missing
}
