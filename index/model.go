package index

// Model describes the embedding model by which the store's vectors are made, according to the last log entry
// about it; see internal/state. The metadata of an index contain the Model as of that index's LSN, because the
// entry may be released from the log.
type Model struct {
	LSN       uint64 `json:"lsn"`            // LSN of the last log entry about the model; 0: the log has no such entry
	Name      string `json:"name,omitempty"` // name of the model, as in Options.EmbedModel
	Dimension int    `json:"dim,omitempty"`  // dimension of the model's vectors
	// LSN of the entry that switched to this model: versions below it have vectors of an older model
	Since uint64 `json:"since,omitempty"`
	Done  bool   `json:"done,omitempty"` // no document has a vector of an older model
	Next  string `json:"next,omitempty"` // name of the model that a running re-embedding will switch to
}

// Switching reports whether the store has changed its model and some documents still have vectors of the previous
// model.
func (m Model) Switching() bool { return m.Since != 0 && !m.Done }

// Older reports whether a version's vector was made by an older model. It returns false if no such vectors are left.
// number is the FAISS id of the vector: the LSN of the write that brought the vector, which stays the same in versions
// that keep the vector, or a number from an import. Numbers from an import are smaller or larger than every LSN; then
// only version decides.
func (m Model) Older(version uint64, number int64) bool {
	return m.Switching() && (version < m.Since || number >= 64<<10 && number%8 == 0 && uint64(number) < m.Since)
}

// ModelOf returns the embedding model in the metadata of an index, or the zero Model if the metadata have no model.
func ModelOf(s *Set) Model {
	x, ok := extraOf(s)
	if !ok || x.Model == nil {
		return Model{}
	}
	return *x.Model
}
