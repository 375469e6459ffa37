package index

// Model describes the model of the store's vectors, as of the last log entry about it; see internal/state. It is stored
// in the metadata of an index, as of that index's LSN, because the log is released.
type Model struct {
	LSN       uint64 `json:"lsn"`            // LSN of the last log entry about the model; 0: there is none
	Name      string `json:"name,omitempty"` // name of the model, as in Options.EmbedModel
	Dimension int    `json:"dim,omitempty"`  // dimension of the model's vectors
	// LSN of the switch to the model: versions below carry an older model's vectors
	Since uint64 `json:"since,omitempty"`
	Done  bool   `json:"done,omitempty"` // no version has an older model's vector any more
	Next  string `json:"next,omitempty"` // the model of a running re-embedding, before the switch
}

// Switching reports whether the store has changed its model and some documents still have vectors of the previous
// model.
func (m Model) Switching() bool { return m.Since != 0 && !m.Done }

// Older reports whether the vector of a version is of an older model, while such vectors are left. number is the
// number of the vector. A version that keeps a vector keeps its number, which is the LSN of the write that brought the
// vector. Numbers from an import are smaller than every LSN.
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
