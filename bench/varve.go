package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

func varveEngine() []func() Engine { return []func() Engine{func() Engine { return &varveStore{} }} }

// varveStore is Varve with its defaults.
type varveStore struct {
	st      *varve.Store
	o       *varve.Options
	told    func(kind string, took time.Duration)
	segment uint64 // number of the log's segment at the last call of Levels
}

// Watch implements watched.
func (v *varveStore) Watch(told func(kind string, took time.Duration)) {
	v.told = told
	v.o = &varve.Options{Listener: func(e varve.Event) {
		switch e.Kind {
		case varve.EventIndex:
			kind := string(e.Kind)
			if e.Path == "memory_index.json" {
				kind = "index merged"
			}
			told(kind, e.Took)
		case varve.EventFlush, varve.EventMerged, varve.EventSlowSync, varve.EventLockWait, varve.EventSlowed:
			told(string(e.Kind), e.Took)
		}
	}}
}

// segmentSize is the default size of a segment of the log.
const segmentSize = 64 << 20

// Levels implements watched.
func (v *varveStore) Levels() map[string]int64 {
	s := v.st.Admin().Stats()
	if at := s.Durable / segmentSize; at != v.segment {
		if v.segment != 0 && v.told != nil {
			v.told("log rolled", 0)
		}
		v.segment = at
	}
	return map[string]int64{"durable": int64(s.Durable), "unflushed": s.Unflushed, "backlog": s.Backlog}
}

func (v *varveStore) Name() string       { return "Varve" }
func (v *varveStore) MultiProcess() bool { return true }

func (v *varveStore) Open(dir string) (err error) {
	v.st, err = varve.Open(context.Background(), dir, v.o)
	return err
}

func (v *varveStore) memory(d Doc) varve.Memory {
	return varve.Memory{ID: d.ID, Content: d.Content, Metadata: map[string]any{"session_id": d.session()}}
}

func (v *varveStore) Put(d Doc) error {
	_, err := v.st.Put(context.Background(), v.memory(d))
	return err
}

func (v *varveStore) PutBatch(docs []Doc) error {
	b := new(varve.Batch)
	for _, d := range docs {
		b.Put(v.memory(d))
	}
	return v.st.Apply(context.Background(), b)
}

func (v *varveStore) Get(id string) ([]byte, error) {
	return v.st.Admin().GetRaw(context.Background(), id)
}
func (v *varveStore) Flush() error { return v.st.Flush(context.Background()) }
func (v *varveStore) Close() error { return v.st.Close() }

// OpenUncached opens the store without its cache of documents.
func (v *varveStore) OpenUncached(dir string) (err error) {
	v.st, err = varve.Open(context.Background(), dir, &varve.Options{CacheBytes: -1})
	return err
}

// Path returns the path of a memory's file; the id must be usable as a file name.
func (v *varveStore) Path(dir, id string) string {
	return filepath.Join(dir, "memories", id+".json")
}

// Update changes a memory depending on its previous content.
func (v *varveStore) Update(id string) error {
	_, err := v.st.Update(context.Background(), id, func(m *varve.Memory) error {
		n, _ := m.Metadata["n"].(float64)
		m.Metadata["n"] = n + 1
		return nil
	})
	return err
}

// Increment increments a counter in a scope of working memory.
func (v *varveStore) Increment(id string) error {
	w, err := v.st.Working().Open(context.Background(), working.Scope{Agent: "a", Session: id}, nil)
	if err != nil {
		return err
	}
	_, err = w.Increment(context.Background(), "n", 1)
	return err
}
