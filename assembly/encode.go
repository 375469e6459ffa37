package assembly

import "github.com/varve-db/varve/internal/jsondoc"

// Encode returns the document of a. Unlike Prepare, it sets no id, no time and no default. Errors are
// *errs.FieldError.
func (a *Assembly) Encode(limits Limits) ([]byte, error) { return a.encode(limits.Resolved(), nil) }

// encode encodes the document. It writes into buffer if the document fits, otherwise into a new slice.
func (a *Assembly) encode(lim Limits, buffer []byte) (doc []byte, err error) {
	if err := jsondoc.CheckDim(memberComposite, len(a.CompositeEmbedding), lim.EmbeddingDim); err != nil {
		return nil, err
	}
	if err := jsondoc.CheckDim(memberHyperbolic, len(a.HyperbolicEmbedding), lim.EmbeddingDim); err != nil {
		return nil, err
	}
	// A document that is obviously too large is refused before it is copied.
	if err := lim.checkSize(len(a.Description)); err != nil {
		return nil, err
	}
	if err := lim.checkName(a.Name); err != nil {
		return nil, err
	}
	if err := a.checkLists(lim); err != nil {
		return nil, err
	}
	for _, t := range a.times() {
		if err := jsondoc.CheckTime(*t.value); err != nil {
			return nil, jsondoc.InField(t.name, err)
		}
	}
	if a.source != nil {
		doc, err = a.encodeOver(lim)
	} else {
		doc, err = a.encodeNew(lim, buffer)
	}
	if err != nil {
		return nil, err
	}
	return doc, lim.checkSize(len(doc))
}

// MarshalJSON returns the document; encoding/json removes its white space.
func (a Assembly) MarshalJSON() ([]byte, error) { return a.Encode(Limits{}) }

// encodeNew encodes an Assembly that was not decoded, in one pass. Fields that are nil, zero times and an empty
// SchemaVersion are omitted. But memory_ids, emotion_profile and keywords are always written, because every reader
// expects these.
func (a *Assembly) encodeNew(lim Limits, buffer []byte) ([]byte, error) {
	if n := a.sizeHint(); cap(buffer) < n {
		buffer = make([]byte, 0, n)
	}
	w := jsondoc.NewMemberWriter(buffer, lim.Depth)
	w.Text(memberID, a.ID)
	w.Text(memberName, a.Name)
	w.Text(memberDescription, a.Description)
	w.Strings(memberMemoryIDs, a.MemoryIDs)
	w.Floats(memberComposite, a.CompositeEmbedding)
	w.Floats(memberHyperbolic, a.HyperbolicEmbedding)
	w.Map(memberEmotion, a.EmotionProfile)
	w.Strings(memberKeywords, a.Keywords)
	if a.Tags != nil {
		w.Strings(memberTags, a.Tags)
	}
	if a.Topics != nil {
		w.Strings(memberTopics, a.Topics)
	}
	w.Time(memberCreationTime, a.CreationTime)
	w.Time(memberLastAccess, a.LastAccessTime)
	w.Count(memberAccessCount, a.AccessCount)
	w.Float(memberLevel, a.ActivationLevel)
	w.Time(memberLastActivation, a.LastActivation)
	w.Count(memberActivationCount, a.ActivationCount)
	w.Bool(memberActive, !a.Inactive)
	if a.MergedFrom != nil {
		w.Strings(memberMergedFrom, a.MergedFrom)
	}
	w.Time(memberIndexedAt, a.VectorIndexUpdatedAt)
	if a.SchemaVersion != "" {
		w.Text(memberSchema, a.SchemaVersion)
	}
	w.Time(memberCreatedAt, a.CreatedAt)
	w.Time(memberUpdatedAt, a.UpdatedAt)
	return w.Document()
}

// sizeHint estimates the size of the document in bytes: 18 bytes for a float and its indent, 44 for an id (a UUID, its
// quotes and indent). The estimate is usually large enough.
func (a *Assembly) sizeHint() int {
	n := 768 + len(a.ID) + len(a.Name) + len(a.Description) + len(a.Description)/16 + 60*len(a.EmotionProfile)
	for _, list := range a.lists() {
		n += 44 * len(*list.value)
	}
	return n + 18*(len(a.CompositeEmbedding)+len(a.HyperbolicEmbedding))
}

// encodeOver encodes an Assembly that was decoded. It writes the fields of a into the decoded document, and keeps the
// JSON members of that document that the program does not know.
func (a *Assembly) encodeOver(lim Limits) ([]byte, error) {
	e := jsondoc.NewMemberEditor(a.source, memberOrder, lim.Depth)
	e.Text(memberID, a.ID)
	e.Text(memberName, a.Name)
	e.Text(memberDescription, a.Description)
	e.Strings(memberMemoryIDs, a.MemoryIDs)
	e.Floats(memberComposite, a.CompositeEmbedding)
	e.Floats(memberHyperbolic, a.HyperbolicEmbedding)
	e.Map(memberEmotion, a.EmotionProfile)
	e.Strings(memberKeywords, a.Keywords)
	e.Strings(memberTags, a.Tags)
	e.Strings(memberTopics, a.Topics)
	e.Time(memberCreationTime, a.CreationTime)
	e.Time(memberLastAccess, a.LastAccessTime)
	e.Count(memberAccessCount, a.AccessCount)
	e.Float(memberLevel, a.ActivationLevel)
	e.Time(memberLastActivation, a.LastActivation)
	e.Count(memberActivationCount, a.ActivationCount)
	e.Bool(memberActive, !a.Inactive, true)
	e.Strings(memberMergedFrom, a.MergedFrom)
	e.Time(memberIndexedAt, a.VectorIndexUpdatedAt)
	if raw, ok := a.source.Get(memberSchema); !ok || !sameSchema(raw, a.SchemaVersion) {
		e.Text(memberSchema, a.SchemaVersion)
	}
	e.Time(memberCreatedAt, a.CreatedAt)
	e.Time(memberUpdatedAt, a.UpdatedAt)
	a.dropStale(&e)
	return e.Document(wholeName)
}

func sameSchema(raw []byte, version string) bool {
	was, err := decodeSchema(raw)
	return err == nil && was == version
}
