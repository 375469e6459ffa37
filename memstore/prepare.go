package memstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/record"
)

// Previous describes the version of a memory that a write replaces.
type Previous struct {
	CreatedAt time.Time
	// Document is the text of the previous version, if available. A Memory that was not decoded gets the members from
	// it that the program does not know, and the text of members that are unchanged. A text that cannot be read is
	// ignored: a damaged version must not prevent a valid one.
	Document []byte
	// VectorID is the FAISS id of the previous version's vector (index.Entry.Vector), 0 if it has none. A write that
	// leaves the embedding unchanged keeps the id.
	VectorID int64
	// Version is the LSN of the previous version. With it, an unchanged embedding is recognized without Document, for
	// a Memory that was decoded from that version.
	Version uint64
}

// PrepareOptions are settings of the store. The zero value has the defaults.
type PrepareOptions struct {
	Limits Limits
	Rand   io.Reader // source of random bytes for ids; nil: crypto/rand
	// Buffer is memory for document and line, used if it is large enough; they are then valid until the
	// caller uses Buffer again.
	Buffer []byte
	// VectorID is the FAISS id of an imported embedding. It is used unless the embedding is that of the version
	// before; 0: the id is the version of this write.
	VectorID int64
	// KeepUpdated keeps the UpdatedAt of m, for a write that changes only derived data.
	KeepUpdated bool
}

// Prepare completes m and returns the document and the index line for the log (see the package
// comment). old is nil for a new memory.
//
//	ID          a UUIDv7 if it is empty
//	CreatedAt   old's; else m's; else now
//	UpdatedAt   now; m's with KeepUpdated
//	Timestamp   now if it is zero
//
// now is truncated to microseconds; all times become UTC. Nothing of m is retained, and m is
// changed only if err is nil; its slices and maps are not written to. A value that may not be
// stored is a *errs.FieldError that names member, value and limit.
func Prepare(m *Memory, old *Previous, now time.Time, opts PrepareOptions) (doc, line []byte, err error) {
	lim := opts.Limits.Resolved()
	now = now.UTC().Truncate(time.Microsecond)
	n := *m
	if n.ID == "" {
		if n.ID, err = NewID(now, opts.Rand); err != nil {
			return nil, nil, fmt.Errorf("generating an id: %w", err)
		}
	} else if err := jsondoc.CheckID(memberID, n.ID, lim.IDBytes); err != nil {
		return nil, nil, err
	}
	if !opts.KeepUpdated || n.UpdatedAt.IsZero() {
		n.UpdatedAt = now
	}
	if old != nil && !old.CreatedAt.IsZero() {
		n.CreatedAt = old.CreatedAt
	} else if n.CreatedAt.IsZero() {
		n.CreatedAt = now
	}
	if n.Timestamp.IsZero() {
		n.Timestamp = now
	}
	for _, t := range n.times() {
		*t.value = t.value.Round(0).UTC()
	}
	if err := n.checkSession(lim); err != nil {
		return nil, nil, err
	}
	base := n
	if base.source == nil && old != nil && old.Document != nil {
		// The present limits do not apply: the old text was stored under those of its time.
		base.source, _ = parse(old.Document, Limits{Depth: jsondoc.DeepestDepth})
	}
	doc, kept, err := base.encode(lim, opts.Buffer)
	if err != nil {
		return nil, nil, err
	}
	id := opts.VectorID
	if old != nil && old.VectorID != 0 && m.unchanged(old, kept) {
		id = old.VectorID
	}
	room := doc[len(doc):] // what is left of the buffer, if there is one
	if cap(opts.Buffer) == 0 {
		room = nil
	}
	if line, err = n.appendLine(room, doc, id); err != nil {
		return nil, nil, err
	}
	*m = n
	return doc, line, nil
}

// unchanged reports whether m has the same embedding as old, the version that the write replaces. kept is the result
// of encode: whether the embedding equals the one in the text from which m was decoded. unchanged returns kept if m
// was decoded from the version old, or was not decoded. Otherwise it compares the embedding with the one in
// old.Document.
func (m *Memory) unchanged(old *Previous, kept bool) bool {
	if m.source == nil || old.Version != 0 && m.Version == old.Version {
		return kept
	}
	if len(m.Embedding) == 0 || old.Document == nil {
		return false
	}
	text, err := parse(old.Document, Limits{Depth: jsondoc.DeepestDepth})
	if err != nil {
		return false
	}
	raw, ok := text.Get(memberEmbedding)
	return ok && jsondoc.EqualFloats(raw, m.Embedding)
}

// KeepsEmbedding reports whether m was decoded from a document and still has the embedding of that document.
func (m *Memory) KeepsEmbedding() bool {
	if m.source == nil {
		return false
	}
	raw, ok := m.source.Get(memberEmbedding)
	if !ok {
		return len(m.Embedding) == 0
	}
	return jsondoc.EqualFloats(raw, m.Embedding)
}

// Reworded reports whether m was decoded from a document and now has other content.
func (m *Memory) Reworded() bool {
	if m.source == nil {
		return false
	}
	raw, ok := m.source.Get(memberContent)
	return ok && !jsondoc.EqualString(raw, m.Content)
}

// checkSession returns an error if the name of a session cannot be stored in the index.
func (m *Memory) checkSession(lim Limits) error {
	v := m.Metadata[metadataSessionID]
	s, ok := v.(string)
	switch {
	case v == nil:
		return nil
	case !ok:
		return &errs.FieldError{Field: metadataSessionPath, Value: human.Quote(fmt.Sprint(v)),
			Err: fmt.Errorf("must be a string, is a %T", v)}
	case len(s) > lim.IDBytes:
		return &errs.FieldError{Field: metadataSessionPath, Value: human.Quote(s),
			Limit: fmt.Sprintf("%d bytes", lim.IDBytes), Err: errs.ErrTooLarge}
	case !utf8.ValidString(s):
		return &errs.FieldError{Field: metadataSessionPath, Value: human.Quote(s), Err: errors.New("not valid UTF-8")}
	}
	return nil
}

// Line returns the index line of m with this document; see the package comment. vectorID is the FAISS id of the
// memory's vector, 0 if that is the version.
func (m *Memory) Line(doc []byte, vectorID int64) ([]byte, error) {
	return m.appendLine(nil, doc, vectorID)
}

func (m *Memory) appendLine(dst, doc []byte, vectorID int64) ([]byte, error) {
	sum := sha256.Sum256(doc)
	session := m.Session()
	if n := 400 + 2*len(session); cap(dst)-len(dst) < n {
		dst = make([]byte, 0, n)
	}
	dst = append(dst, `{"filepath":"`+record.MemoryFolder+`/`...)
	dst = append(dst, jsondoc.FileName(m.ID)...) // lower-case ASCII, nothing to escape
	dst = append(dst, `","created_at":`...)
	dst = jsondoc.AppendTime(dst, m.CreatedAt.Truncate(time.Microsecond))
	dst = append(dst, `,"updated_at":`...)
	dst = jsondoc.AppendTime(dst, m.UpdatedAt)
	dst = append(dst, `,"quickrecal_score":`...)
	dst, err := jsondoc.AppendFloat(dst, m.QuickRecalScore, 64)
	if err != nil {
		return nil, jsondoc.InField(memberScore, err)
	}
	dst = append(dst, `,"content_hash":"sha256:`...)
	dst = hex.AppendEncode(dst, sum[:])
	dst = append(dst, `","size":`...)
	dst = strconv.AppendInt(dst, int64(len(doc)), 10)
	dst = append(dst, `,"dimension":`...)
	dst = strconv.AppendInt(dst, int64(len(m.Embedding)), 10)
	if vectorID != 0 && len(m.Embedding) > 0 {
		dst = append(dst, `,"vector_id":`...)
		dst = strconv.AppendInt(dst, vectorID, 10)
	}
	if session != "" {
		dst = append(dst, `,"session_id":`...)
		if dst, err = jsondoc.AppendString(dst, session); err != nil {
			return nil, jsondoc.InField(metadataSessionPath, err)
		}
	}
	if !m.ExpiresAt.IsZero() {
		dst = append(dst, `,"expires_at":`...)
		dst = jsondoc.AppendTime(dst, m.ExpiresAt.Truncate(time.Microsecond))
	}
	return append(dst, '}'), nil
}
