package index

// Model describes the model of the store's vectors, as of the last log entry about it; see internal/state. It is stored
// in the metadata of an index, as of that index's LSN, because the log is released.
type Model struct {
	LSN       uint64 `json:"lsn"`             // of that entry; 0: there is none
	Name      string `json:"name,omitempty"`  // of the model, as Options.EmbedModel has it
	Dimension int    `json:"dim,omitempty"`   // of its vectors
	Since     uint64 `json:"since,omitempty"` // of the switch to it: versions below carry an older model's vectors
	Done      bool   `json:"done,omitempty"`  // no such versions are left
	Next      string `json:"next,omitempty"`  // the model of a running re-embedding, before the switch
}

// Switching reports whether the store has changed its model and some documents still have vectors of the previous
// model.
func (m Model) Switching() bool { return m.Since != 0 && !m.Done }

// Older reports whether the vector of a version is of an older model, while such vectors are left. number is that of
// the vector: a version that keeps a vector keeps its number, which is the LSN of the write that brought it. Numbers
// from an import are smaller than every LSN.
func (m Model) Older(version uint64, number int64) bool {
	return m.Switching() && (version < m.Since || number >= 64<<10 && number%8 == 0 && uint64(number) < m.Since)
}

// ModelOf returns the Model of a set, the zero Model if it has none.
func ModelOf(s *Set) Model {
	x, ok := extraOf(s)
	if !ok || x.Model == nil {
		return Model{}
	}
	return *x.Model
}
