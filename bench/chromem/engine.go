package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/philippgille/chromem-go"

	"github.com/varve-db/varve"
)

// engine is one way to use one of the two databases.
type engine interface {
	name() string
	open(dir string) error
	add(docs []document) error
	settle() error // returns when all added documents are on the disk, in files
	query(v []float32) ([]hit, error)
	get(id string) error
	count() (int, error)
	close() error
}

type hit struct {
	id    string
	score float64
}

const nearest = 10

// chromemStore is chromem-go with its default files: gob, not compressed.
type chromemStore struct {
	workers int
	dir     string
	db      *chromem.DB
	c       *chromem.Collection
}

func (s *chromemStore) name() string {
	if s.workers == 1 {
		return "chromem-go, 1 goroutine"
	}
	return "chromem-go, 64 goroutines"
}

var errNoEmbedder = errors.New("no embedding function: each document has its embedding already")

func (s *chromemStore) open(dir string) (err error) {
	s.dir = dir
	if s.db, err = chromem.NewPersistentDB(dir, false); err != nil {
		return err
	}
	s.c, err = s.db.GetOrCreateCollection("documents", nil,
		func(context.Context, string) ([]float32, error) { return nil, errNoEmbedder })
	return err
}

func (s *chromemStore) add(docs []document) error {
	list := make([]chromem.Document, len(docs))
	for i, d := range docs {
		list[i] = chromem.Document{ID: d.id, Content: d.content, Metadata: d.metadata, Embedding: d.vector}
	}
	return s.c.AddDocuments(context.Background(), list, s.workers)
}

func (s *chromemStore) settle() error { return syncFiles(s.dir) }

func (s *chromemStore) query(v []float32) ([]hit, error) {
	found, err := s.c.QueryEmbedding(context.Background(), v, nearest, nil, nil)
	var hits []hit
	for _, f := range found {
		hits = append(hits, hit{f.ID, float64(f.Similarity)})
	}
	return hits, err
}

func (s *chromemStore) get(id string) error {
	_, err := s.c.GetByID(context.Background(), id)
	return err
}

func (s *chromemStore) count() (int, error) { return s.c.Count(), nil }

// close releases the database; chromem-go has nothing to close.
func (s *chromemStore) close() error {
	s.db, s.c = nil, nil
	return nil
}

// varveStore is Varve with its defaults.
type varveStore struct {
	workers int // number of goroutines that call Put; 0: one call of PutAll
	st      *varve.Store
}

func (s *varveStore) name() string {
	switch s.workers {
	case 0:
		return "Varve, PutAll"
	case 1:
		return "Varve, 1 goroutine"
	}
	return "Varve, 64 goroutines"
}

func (s *varveStore) open(dir string) (err error) {
	s.st, err = varve.Open(context.Background(), dir, nil)
	return err
}

func (s *varveStore) memory(d document) varve.Memory {
	m := varve.Memory{ID: d.id, Content: d.content, Embedding: d.vector, Metadata: map[string]any{}}
	for k, v := range d.metadata {
		m.Metadata[k] = v
	}
	return m
}

func (s *varveStore) add(docs []document) error {
	ctx := context.Background()
	if s.workers == 0 {
		_, err := s.st.PutAll(ctx, func(yield func(varve.Memory) bool) {
			for _, d := range docs {
				if !yield(s.memory(d)) {
					return
				}
			}
		})
		return err
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, s.workers)
	for w := range s.workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(docs)) && errs[w] == nil; i = next.Add(1) - 1 {
				_, errs[w] = s.st.Put(ctx, s.memory(docs[i]))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *varveStore) settle() error { return s.st.Flush(context.Background()) }

func (s *varveStore) query(v []float32) ([]hit, error) {
	found, err := s.st.Search(context.Background(), varve.Query{Vector: v, Limit: nearest})
	var hits []hit
	for _, f := range found {
		hits = append(hits, hit{f.ID, f.Score})
	}
	return hits, err
}

func (s *varveStore) get(id string) error {
	_, err := s.st.Get(context.Background(), id)
	return err
}

func (s *varveStore) count() (int, error) {
	n, err := s.st.Count(context.Background())
	return int(n), err
}

func (s *varveStore) close() error { return s.st.Close() }

// same reports whether two searches found the same documents in the same order; neighbours that rounding has
// exchanged count as equal.
func same(a, b []hit) bool {
	if len(a) != len(b) {
		return false
	}
	for i, h := range a {
		if !slices.ContainsFunc(b[max(0, i-1):min(len(b), i+2)],
			func(o hit) bool { return o.id == h.id && near(o.score, h.score) }) {
			return false
		}
	}
	return true
}

func near(a, b float64) bool { return a-b < 1e-5 && b-a < 1e-5 }
