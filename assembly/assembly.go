package assembly

import (
	"reflect"
	"slices"
	"time"

	"github.com/varve-db/varve/internal/jsondoc"
)

// Assembly is a group of memories. It may be copied; the copy shares the slices and maps of the original, unless it is
// made with Clone. A zero time means that the time is not set.
type Assembly struct {
	ID          string
	Name        string
	Description string
	MemoryIDs   []string // ids of the members, each once, in the order in which they were added

	CompositeEmbedding  []float32 // see Composite; nil: none
	HyperbolicEmbedding []float32 // memstore.Hyperbolic of the composite; nil: none

	EmotionProfile map[string]any // JSON values; a json.Number where float64 would lose digits
	Keywords       []string
	Tags           []string
	Topics         []string

	CreationTime    time.Time // time at which the group was created
	LastAccessTime  time.Time
	AccessCount     int64
	ActivationLevel float64 // activation level at the time LastActivation; see ActivationAt
	LastActivation  time.Time
	ActivationCount int64

	// Inactive is the negation of the member is_active, so that the zero Assembly is active, as is one
	// whose document has no such member.
	Inactive bool

	MergedFrom           []string  // ids of all assemblies that were merged into this one; see Merge
	VectorIndexUpdatedAt time.Time // time at which CompositeEmbedding last changed; set by Prepare
	SchemaVersion        string    // assembly_schema_version, as another system wrote it
	CreatedAt            time.Time // time of creation; set by the store, the same in all versions
	UpdatedAt            time.Time // time of the last change; set by the store

	// Version is the LSN of the write that stored this state; 0 if it was not read from a store.
	Version uint64

	// By is the number of the writer of that version; 0 if it is not known. See package writer.
	By uint32

	// source is the object from which the Assembly was decoded, or nil. Copies share it, and it is never modified.
	source *jsondoc.Object
}

// The members of the document.
const (
	memberID              = "assembly_id"
	memberName            = "name"
	memberDescription     = "description"
	memberMemoryIDs       = "memory_ids"
	memberComposite       = "composite_embedding"
	memberHyperbolic      = "hyperbolic_embedding"
	memberEmotion         = "emotion_profile"
	memberKeywords        = "keywords"
	memberTags            = "tags"
	memberTopics          = "topics"
	memberCreationTime    = "creation_time"
	memberLastAccess      = "last_access_time"
	memberAccessCount     = "access_count"
	memberLevel           = "activation_level"
	memberLastActivation  = "last_activation"
	memberActivationCount = "activation_count"
	memberActive          = "is_active"
	memberMergedFrom      = "merged_from"
	memberIndexedAt       = "vector_index_updated_at"
	memberSchema          = "assembly_schema_version"
	memberCreatedAt       = "created_at"
	memberUpdatedAt       = "updated_at"
)

// memberOrder returns the names of the JSON members of a document, in the order in which they are written.
func memberOrder() []string {
	return []string{memberID, memberName, memberDescription, memberMemoryIDs, memberComposite, memberHyperbolic,
		memberEmotion,
		memberKeywords, memberTags, memberTopics, memberCreationTime, memberLastAccess, memberAccessCount, memberLevel,
		memberLastActivation, memberActivationCount, memberActive, memberMergedFrom, memberIndexedAt, memberSchema,
		memberCreatedAt, memberUpdatedAt}
}

// Clone returns a copy that shares no slice and no map with a. Values to which pointers and structs in EmotionProfile
// refer are shared; Decode creates no such values.
func (a *Assembly) Clone() *Assembly {
	c := *a
	for _, list := range c.lists() {
		*list.value = slices.Clone(*list.value)
	}
	c.CompositeEmbedding = slices.Clone(a.CompositeEmbedding)
	c.HyperbolicEmbedding = slices.Clone(a.HyperbolicEmbedding)
	if a.EmotionProfile != nil {
		c.EmotionProfile = jsondoc.CloneMap(a.EmotionProfile, jsondoc.DeepestDepth)
	}
	return &c
}

// Equal reports whether the fields of both assemblies are equal. It ignores Version, By, and the documents from which
// the assemblies were decoded.
func (a *Assembly) Equal(o *Assembly) bool {
	mine, other := a.lists(), o.lists()
	for i := range mine {
		if !slices.Equal(*mine[i].value, *other[i].value) {
			return false
		}
	}
	at, otherAt := a.times(), o.times()
	for i := range at {
		if !at[i].value.Equal(*otherAt[i].value) {
			return false
		}
	}
	return a.ID == o.ID && a.Name == o.Name && a.Description == o.Description && a.SchemaVersion == o.SchemaVersion &&
		a.AccessCount == o.AccessCount && a.ActivationLevel == o.ActivationLevel && a.ActivationCount == o.ActivationCount &&
		a.Inactive == o.Inactive &&
		slices.Equal(a.CompositeEmbedding, o.CompositeEmbedding) &&
		slices.Equal(a.HyperbolicEmbedding, o.HyperbolicEmbedding) &&
		(len(a.EmotionProfile) == 0 && len(o.EmotionProfile) == 0 || reflect.DeepEqual(a.EmotionProfile, o.EmotionProfile))
}

// Decoded reports whether a was decoded from a document. If so, Encode keeps the JSON members of that document that
// the program does not know.
func (a *Assembly) Decoded() bool { return a.source != nil }

type namedTime struct {
	name  string
	value *time.Time
}

func (a *Assembly) times() [6]namedTime {
	return [6]namedTime{
		{memberCreationTime, &a.CreationTime}, {memberLastAccess, &a.LastAccessTime},
		{memberLastActivation, &a.LastActivation},
		{memberIndexedAt, &a.VectorIndexUpdatedAt}, {memberCreatedAt, &a.CreatedAt}, {memberUpdatedAt, &a.UpdatedAt},
	}
}

type namedList struct {
	name  string
	value *[]string
}

func (a *Assembly) lists() [5]namedList {
	return [5]namedList{
		{memberMemoryIDs, &a.MemoryIDs}, {memberKeywords, &a.Keywords}, {memberTags, &a.Tags}, {memberTopics, &a.Topics},
		{memberMergedFrom, &a.MergedFrom},
	}
}
