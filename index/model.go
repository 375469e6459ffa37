package index

// Model says what makes the store's vectors, as the last entry of the log that
// spoke of it left it; see internal/state. It is kept in the metadata of an index,
// as of that index's LSN, because the log is released.
type Model struct {
	LSN       uint64 `json:"lsn"`             // of the entry that said this; 0: none ever did
	Name      string `json:"name,omitempty"`  // of the model, as Options.EmbedModel has it
	Dimension int    `json:"dim,omitempty"`   // of its vectors
	Since     uint64 `json:"since,omitempty"` // of the switch to it: versions below carry an older model's vectors
	Done      bool   `json:"done,omitempty"`  // there are no such versions any more
	Next      string `json:"next,omitempty"`  // the model that everything is being embedded by, whose turn has not come
}

// Switching says that the store has changed its model, and that documents are left
// which still carry the vectors of the one before.
func (m Model) Switching() bool { return m.Since != 0 && !m.Done }

// Older says that the vector of a version is an older model's, while such are left.
// number is that of its vector: a version that keeps a vector keeps its number,
// which is the LSN of the write that brought it. No LSN is as small as those that
// an import brings along.
func (m Model) Older(version uint64, number int64) bool {
	return m.Switching() && (version < m.Since || number >= 64<<10 && number%8 == 0 && uint64(number) < m.Since)
}

// ModelOf is what a set says, the zero Model where it says nothing.
func ModelOf(s *Set) Model {
	x, ok := extraOf(s)
	if !ok || x.Model == nil {
		return Model{}
	}
	return *x.Model
}
