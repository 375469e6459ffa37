package memstore

import (
	"strconv"
	"time"

	"github.com/varve-db/varve/internal/docfile"
)

// Encode gives the document of m as it stands: nothing is set or defaulted.
// Errors are *errs.FieldError.
func (m *Memory) Encode(limits Limits) ([]byte, error) { return m.encode(limits.Resolved(), nil) }

// encode puts the document into the buffer if it fits.
func (m *Memory) encode(lim Limits, buffer []byte) (doc []byte, err error) {
	if err := lim.checkDim(memberEmbedding, len(m.Embedding)); err != nil {
		return nil, err
	}
	if err := lim.checkDim(memberHyperbolic, len(m.HyperbolicEmbedding)); err != nil {
		return nil, err
	}
	// An obvious giant is refused before it is copied.
	if err := lim.checkSize(len(m.Content)); err != nil {
		return nil, err
	}
	for _, t := range m.times() {
		if err := docfile.CheckTime(*t.value); err != nil {
			return nil, docfile.InField(t.name, err)
		}
	}
	if m.source != nil {
		doc, err = m.encodeOver(lim)
	} else {
		doc, err = m.encodeNew(lim, buffer)
	}
	if err != nil {
		return nil, err
	}
	return doc, lim.checkSize(len(doc))
}

// MarshalJSON gives the document; encoding/json writes it without its white space.
func (m Memory) MarshalJSON() ([]byte, error) { return m.Encode(Limits{}) }

type namedTime struct {
	name  string
	value *time.Time
}

func (m *Memory) times() [6]namedTime {
	return [6]namedTime{
		{memberTimestamp, &m.Timestamp}, {memberScoreUpdated, &m.QuickRecalUpdated}, {memberLastAccess, &m.LastAccessTime},
		{memberCreatedAt, &m.CreatedAt}, {memberUpdatedAt, &m.UpdatedAt}, {memberExpiresAt, &m.ExpiresAt},
	}
}

// encodeNew writes a Memory that has no text yet, in one pass. What it has not
// is left out, but for the members that every reader expects.
func (m *Memory) encodeNew(lim Limits, buffer []byte) ([]byte, error) {
	if n := m.sizeHint(); cap(buffer) < n {
		buffer = make([]byte, 0, n)
	}
	w := writer{dst: buffer[:0]}
	w.dst = append(w.dst, '{')
	w.text(memberID, m.ID)
	w.text(memberContent, m.Content)
	w.floats(memberEmbedding, m.Embedding)
	w.time(memberTimestamp, m.Timestamp)
	w.name(memberScore)
	w.done(docfile.AppendFloat(w.dst, m.QuickRecalScore, 64))
	w.time(memberScoreUpdated, m.QuickRecalUpdated)
	w.name(memberMetadata)
	w.done(docfile.AppendValue(w.dst, m.Metadata, 1, lim.Depth))
	w.name(memberAccessCount)
	w.dst = strconv.AppendInt(w.dst, m.AccessCount, 10)
	w.time(memberLastAccess, m.LastAccessTime)
	w.floats(memberHyperbolic, m.HyperbolicEmbedding)
	w.time(memberCreatedAt, m.CreatedAt)
	w.time(memberUpdatedAt, m.UpdatedAt)
	w.time(memberExpiresAt, m.ExpiresAt)
	w.dst = append(w.dst, '\n', '}', '\n')
	return w.dst, w.err
}

// sizeHint is usually enough and seldom twice too much: 16 bytes a float and its
// indent, 60 bytes a metadata member.
func (m *Memory) sizeHint() int {
	return 512 + len(m.ID) + len(m.Content) + len(m.Content)/16 + 60*len(m.Metadata) + 18*(len(m.Embedding)+len(m.HyperbolicEmbedding))
}

// writer appends members at level 1; its first error, completed with the
// member's name, is kept and the rest is skipped over.
type writer struct {
	dst    []byte
	member string
	err    error
}

func (w *writer) name(name string) {
	if w.member != "" {
		w.dst = append(w.dst, ',')
	}
	w.member = name
	w.dst = append(w.dst, "\n  \""...)
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, `": `...)
}

func (w *writer) done(dst []byte, err error) {
	w.dst = dst
	if err != nil && w.err == nil {
		w.err = docfile.InField(w.member, err)
	}
}

func (w *writer) text(name, s string) {
	w.name(name)
	w.done(docfile.AppendString(w.dst, s))
}

func (w *writer) floats(name string, list []float32) {
	if list != nil {
		w.name(name)
		w.done(docfile.AppendFloats(w.dst, list, 1))
	}
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.name(name)
		w.dst = docfile.AppendTime(w.dst, t)
	}
}
