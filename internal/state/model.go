package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/varve-db/varve/index"
)

// The model of the store's vectors is set by entries of one key, which belongs to no document. So the log orders a
// change of the model among the writes that bring vectors. Each of these writes names, as a precondition, the model
// entry that it was prepared under: a vector of one model is never committed after the switch to another. The line of
// such an entry is a Change.

// ModelKey is the key of the log entries that set the embedding model of the store.
const ModelKey = "v"

// Change is the content of a log entry that sets the embedding model of the store.
type Change struct {
	Name      string `json:"name,omitempty"`
	Dimension int    `json:"dim,omitempty"`
	Since     uint64 `json:"since,omitempty"`
	Switch    bool   `json:"switch,omitempty"` // Since is the position of this entry
	Done      bool   `json:"done,omitempty"`
	Next      string `json:"next,omitempty"`
}

// mostDimension is the maximum number of dimensions that a stored vector may have, whatever the limit for new
// documents is.
const mostDimension = 1 << 20

// models are the embedding models of the store, in ascending order of the log positions at which they were set: first
// the model in the index's metadata, then those that later log entries have set.
type models struct{ list atomic.Pointer[[]index.Model] }

func (m *models) get() []index.Model {
	if p := m.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (m *models) begin(set *index.Set) {
	list := []index.Model{index.ModelOf(set)}
	m.list.Store(&list)
}

// swap replaces the models that a newer index covers by the model in the metadata of that index.
func (m *models) swap(set *index.Set) {
	now := index.ModelOf(set)
	list := []index.Model{now}
	for _, o := range m.get() {
		if o.LSN > now.LSN {
			list = append(list, o)
		}
	}
	m.list.Store(&list)
}

func (m *models) apply(pos uint64, line []byte) error {
	now, err := modelIn(pos, line)
	if err != nil {
		return err
	}
	list := append(slices.Clone(m.get()), now)
	m.list.Store(&list)
	return nil
}

// modelIn parses line, the content of a log entry that sets the embedding model. pos is the position of the entry.
func modelIn(pos uint64, line []byte) (index.Model, error) {
	var c Change
	if err := json.Unmarshal(line, &c); err != nil {
		return index.Model{}, fmt.Errorf("the log entry has an invalid embedding model: %w", err)
	}
	if c.Dimension < 0 || c.Dimension > mostDimension || c.Since > pos {
		return index.Model{}, fmt.Errorf("the log entry has a model with an impossible dimension, %d, or position, %d",
			c.Dimension, c.Since)
	}
	if c.Switch {
		c.Since = pos
	}
	return index.Model{LSN: pos, Name: c.Name, Dimension: c.Dimension, Since: c.Since, Done: c.Done, Next: c.Next}, nil
}

// Model returns the embedding model of the store after all log entries that were applied.
func (s *State) Model() index.Model {
	if list := s.models.get(); len(list) > 0 {
		return list[len(list)-1]
	}
	return index.Model{}
}

// ModelAsOf returns the embedding model that the store had at the log position pos. It returns false if this model
// is unknown: the current index covers the log beyond pos, and no known change of the model is before pos.
func (s *State) ModelAsOf(pos uint64) (index.Model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.models.get()
	return s.ModelBefore(pos), s.from.Load() <= pos || len(list) > 0 && list[0].LSN < pos
}

// ModelBefore returns the embedding model that the store had at the log position pos. pos must not be below the
// position up to which the current index covers the log.
func (s *State) ModelBefore(pos uint64) index.Model {
	for _, m := range slices.Backward(s.models.get()) {
		if m.LSN < pos {
			return m
		}
	}
	return index.Model{}
}
