package memstore

import (
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
)

// Encode returns the document of m as it is, without adding an id, times or defaults. Errors are *errs.FieldError.
func (m *Memory) Encode(limits Limits) ([]byte, error) {
	doc, _, err := m.encode(limits.Resolved(), nil)
	return doc, err
}

// encode returns the document of m. If m was not decoded from a document and buffer is large enough, encode uses
// buffer for the result. kept reports whether m has an embedding that has not changed since m was decoded.
func (m *Memory) encode(lim Limits, buffer []byte) (doc []byte, kept bool, err error) {
	if err := jsondoc.CheckDim(memberEmbedding, len(m.Embedding), lim.EmbeddingDim); err != nil {
		return nil, false, err
	}
	if err := jsondoc.CheckDim(memberHyperbolic, len(m.HyperbolicEmbedding), lim.EmbeddingDim); err != nil {
		return nil, false, err
	}
	// A document that is obviously too large is refused before it is copied.
	if err := lim.checkSize(len(m.Content)); err != nil {
		return nil, false, err
	}
	for _, t := range m.times() {
		if err := jsondoc.CheckTime(*t.value); err != nil {
			return nil, false, jsondoc.InField(t.name, err)
		}
	}
	if m.source != nil {
		doc, kept, err = m.encodeOver(lim)
	} else {
		doc, err = m.encodeNew(lim, buffer)
	}
	if err != nil {
		return nil, false, err
	}
	return doc, kept, lim.checkSize(len(doc))
}

// MarshalJSON returns the document; encoding/json removes its white space.
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

// encodeNew returns the document of a Memory that was not decoded. Empty members are omitted, except those that every
// reader expects.
func (m *Memory) encodeNew(lim Limits, buffer []byte) ([]byte, error) {
	if n := m.sizeHint(); cap(buffer) < n {
		buffer = make([]byte, 0, n)
	}
	w := jsondoc.NewMemberWriter(buffer, lim.Depth)
	w.Text(memberID, m.ID)
	w.Text(memberContent, m.Content)
	w.Floats(memberEmbedding, m.Embedding)
	w.Time(memberTimestamp, m.Timestamp)
	w.Float(memberScore, m.QuickRecalScore)
	w.Time(memberScoreUpdated, m.QuickRecalUpdated)
	w.Map(memberMetadata, m.Metadata)
	w.Count(memberAccessCount, m.AccessCount)
	w.Time(memberLastAccess, m.LastAccessTime)
	w.Floats(memberHyperbolic, m.HyperbolicEmbedding)
	w.Time(memberCreatedAt, m.CreatedAt)
	w.Time(memberUpdatedAt, m.UpdatedAt)
	w.Time(memberExpiresAt, m.ExpiresAt)
	return w.Document()
}

// sizeHint estimates the size of the document in bytes. It counts 16 bytes for each number of the embedding with its
// indent, and 60 bytes for each member of the metadata. The estimate is usually large enough, and seldom more than
// twice the size.
func (m *Memory) sizeHint() int {
	return 512 + len(m.ID) + len(m.Content) + len(m.Content)/16 + 60*len(m.Metadata) +
		18*(len(m.Embedding)+len(m.HyperbolicEmbedding))
}

// encodeOver returns the document of a Memory that was decoded. It starts from the decoded text and changes only the
// members that differ. kept reports whether the Memory has an embedding that has not changed since it was decoded.
func (m *Memory) encodeOver(lim Limits) (doc []byte, kept bool, err error) {
	e := jsondoc.NewMemberEditor(m.source, memberOrder, lim.Depth)
	e.Text(memberID, m.ID)
	e.Text(memberContent, m.Content)
	e.Floats(memberEmbedding, m.Embedding)
	e.Time(memberTimestamp, m.Timestamp)
	e.Float(memberScore, m.QuickRecalScore)
	e.Time(memberScoreUpdated, m.QuickRecalUpdated)
	e.Map(memberMetadata, m.Metadata)
	e.Count(memberAccessCount, m.AccessCount)
	e.Time(memberLastAccess, m.LastAccessTime)
	e.Floats(memberHyperbolic, m.HyperbolicEmbedding)
	e.Time(memberCreatedAt, m.CreatedAt)
	e.Time(memberUpdatedAt, m.UpdatedAt)
	e.Time(memberExpiresAt, m.ExpiresAt)
	doc, err = e.Document(wholeName)
	return doc, len(m.Embedding) > 0 && e.Kept(memberEmbedding), err
}
