package memstore

import (
	"reflect"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
)

// Memory is one memory. A copy of the struct shares slices and maps with the original; Clone copies these too. A zero
// time means that the memory does not expire.
type Memory struct {
	ID                  string
	Content             string
	Embedding           []float32 // nil: none
	Timestamp           time.Time // time of the event or text that the memory is about
	QuickRecalScore     float64
	QuickRecalUpdated   time.Time
	Metadata            map[string]any // JSON values; a json.Number where float64 would lose digits
	AccessCount         int64
	LastAccessTime      time.Time
	HyperbolicEmbedding []float32 // see Hyperbolic; nil: none
	CreatedAt           time.Time // time of creation; set by the store, the same in all versions
	UpdatedAt           time.Time // time of the last change; set by the store
	ExpiresAt           time.Time

	// Version is the LSN of the write that stored this state; 0 if it was not read from a store.
	Version uint64

	// By is the number of the writer of that version; 0 if it is not known. See package writer.
	By uint32

	// source is the object from which the Memory was decoded, or nil. Copies share it, and it is never modified.
	source *jsondoc.Object
}

// The members of the document.
const (
	memberID            = "id"
	memberContent       = "content"
	memberEmbedding     = "embedding"
	memberTimestamp     = "timestamp"
	memberScore         = "quickrecal_score"
	memberScoreUpdated  = "quickrecal_updated"
	memberMetadata      = "metadata"
	memberAccessCount   = "access_count"
	memberLastAccess    = "last_access_time"
	memberHyperbolic    = "hyperbolic_embedding"
	memberCreatedAt     = "created_at"
	memberUpdatedAt     = "updated_at"
	memberExpiresAt     = "expires_at"
	metadataSessionID   = "session_id"
	metadataCategory    = "category"
	metadataKey         = "key"
	metadataSessionPath = memberMetadata + "." + metadataSessionID
)

// memberOrder returns the names of the members of a document in the order in which they are written.
func memberOrder() []string {
	return []string{memberID, memberContent, memberEmbedding, memberTimestamp, memberScore, memberScoreUpdated,
		memberMetadata,
		memberAccessCount, memberLastAccess, memberHyperbolic, memberCreatedAt, memberUpdatedAt, memberExpiresAt}
}

// olderNames returns pairs of names of members: the name that other systems used, and the current name.
func olderNames() [3][2]string {
	return [3][2]string{{"text", memberContent}, {"significance", memberScore}, {"last_access", memberLastAccess}}
}

// Session returns metadata.session_id, "" if the member is missing.
func (m *Memory) Session() string { return m.metadataString(metadataSessionID) }

// Category returns metadata.category, "" if the member is missing.
func (m *Memory) Category() string { return m.metadataString(metadataCategory) }

// Key returns metadata.key, "" if the member is missing.
func (m *Memory) Key() string { return m.metadataString(metadataKey) }

func (m *Memory) metadataString(name string) string {
	s, _ := m.Metadata[name].(string)
	return s
}

// Expired reports whether the memory has expired at now.
func (m *Memory) Expired(now time.Time) bool {
	return !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt)
}

// Clone returns a copy that shares no slice and no map with m. It does not copy what pointers and structs in Metadata
// refer to; a decoded Memory has none of these.
func (m *Memory) Clone() *Memory {
	c := *m
	c.Embedding = slices.Clone(m.Embedding)
	c.HyperbolicEmbedding = slices.Clone(m.HyperbolicEmbedding)
	if m.Metadata != nil {
		c.Metadata = jsondoc.CloneMap(m.Metadata, jsondoc.DeepestDepth)
	}
	return &c
}

// Equal reports whether the fields of both memories are equal. It ignores Version, By, and the documents from which
// the memories were decoded.
func (m *Memory) Equal(o *Memory) bool {
	return m.ID == o.ID && m.Content == o.Content && m.QuickRecalScore == o.QuickRecalScore &&
		m.AccessCount == o.AccessCount &&
		m.Timestamp.Equal(o.Timestamp) && m.QuickRecalUpdated.Equal(o.QuickRecalUpdated) &&
		m.LastAccessTime.Equal(o.LastAccessTime) &&
		m.CreatedAt.Equal(o.CreatedAt) && m.UpdatedAt.Equal(o.UpdatedAt) && m.ExpiresAt.Equal(o.ExpiresAt) &&
		slices.Equal(m.Embedding, o.Embedding) && slices.Equal(m.HyperbolicEmbedding, o.HyperbolicEmbedding) &&
		(len(m.Metadata) == 0 && len(o.Metadata) == 0 || reflect.DeepEqual(m.Metadata, o.Metadata))
}

// Decoded reports whether m was decoded from a document. If so, members that the program does not know are written as
// in that document.
func (m *Memory) Decoded() bool { return m.source != nil }

// ReadAs returns the name of the member to which Decode assigns a member with the given name. It returns "" if Decode
// does not know the name and only keeps the member unchanged.
func ReadAs(name string) string {
	older := olderNames()
	return jsondoc.ReadAs(name, memberOrder(), older[:]...)
}
