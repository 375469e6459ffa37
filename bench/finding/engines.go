package main

import (
	"context"
	"database/sql"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/memstore"
)

// doc is a memory in the form that all engines get; only Varve uses the vector.
type doc struct {
	id, session, text string
	vector            []float32
}

type engine interface {
	Open(dir string) error
	PutAll(docs func(yield func(doc) bool)) error
	Search(query, session string, like bool) error
	Close() error
	Index(dir string, n int, texts int64) int64 // size of the index in bytes
}

// writer is an engine whose single puts are measured.
type writer interface{ Put(d doc) error }

var engines = map[string]func() engine{
	"varve": func() engine { return &store{} },
	"fts5":  func() engine { return &fts{} },
	"bleve": func() engine { return &bleved{} },
	"scan":  func() engine { return &scan{} },
}

type store struct{ st *varve.Store }

func (s *store) Open(dir string) (err error) {
	s.st, err = varve.Open(context.Background(), filepath.Join(dir, "store"), nil)
	return err
}

func memoryOf(d doc) varve.Memory {
	return varve.Memory{ID: d.id, Content: d.text, Embedding: d.vector, Metadata: map[string]any{"session_id": d.session}}
}

// Shared implements shared.
func (s *store) Shared() string { return "varve" }

// Both searches by words and by a vector together.
func (s *store) Both(query string, vector []float32) error {
	_, err := s.st.Search(context.Background(), varve.Query{Text: query, Vector: vector})
	return err
}

func (s *store) PutAll(docs func(yield func(doc) bool)) error {
	_, err := s.st.PutAll(context.Background(), func(yield func(varve.Memory) bool) {
		docs(func(d doc) bool { return yield(memoryOf(d)) })
	})
	return err
}

func (s *store) Put(d doc) error {
	_, err := s.st.Put(context.Background(), memoryOf(d))
	return err
}

func (s *store) Search(query, session string, like bool) error {
	var filters []varve.Filter
	if session != "" {
		filters = append(filters, varve.InSession(session))
	}
	q := varve.Query{Text: query}
	if like {
		q.MaxRareTerms = 24
	}
	_, err := s.st.Search(context.Background(), q, filters...)
	return err
}

// Page reads the first 50 memories in an order, Sessions reads all sessions.
func (s *store) Page(order string) error {
	o, err := memstore.ParseOrder(order, "")
	if err != nil {
		return err
	}
	n := 0
	for _, err := range s.st.Memories(context.Background(), varve.Sorted(o)) {
		if err != nil {
			return err
		}
		if n++; n == 50 {
			break
		}
	}
	return nil
}

func (s *store) Sessions() error {
	for _, err := range s.st.Sessions().All(context.Background()) {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *store) Close() error { return s.st.Close() }

func (s *store) Index(dir string, _ int, _ int64) int64 {
	return size(filepath.Join(dir, "store", "view_index", "words"))
}

// Shared implements shared.
func (f *fts) Shared() string { return "fts5" }

// fts is a table of SQLite's FTS5, which also stores the texts.
type fts struct{ w, r *sql.DB }

func (f *fts) Open(dir string) (err error) {
	dsn := "file:" + filepath.ToSlash(filepath.Join(dir, "fts.db")) +
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	if f.w, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	f.w.SetMaxOpenConns(1)
	if f.r, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	_,
		err = f.w.Exec(`CREATE VIRTUAL TABLE IF NOT EXISTS m USING fts5(
			id UNINDEXED, session UNINDEXED, text, tokenize = 'porter unicode61')`)
	return err
}

func (f *fts) PutAll(docs func(yield func(doc) bool)) error {
	tx, err := f.w.Begin()
	if err != nil {
		return err
	}
	n := 0
	docs(func(d doc) bool {
		if _, err = tx.Exec(`INSERT INTO m VALUES (?, ?, ?)`, d.id, d.session, d.text); err != nil {
			return false
		}
		if n++; n%10_000 == 0 {
			if err = tx.Commit(); err == nil {
				tx, err = f.w.Begin()
			}
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (f *fts) Put(d doc) error {
	_, err := f.w.Exec(`INSERT INTO m VALUES (?, ?, ?)`, d.id, d.session, d.text)
	return err
}

func (f *fts) Search(query, session string, _ bool) error {
	var words []string
	for _, w := range strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		words = append(words, `"`+w+`"`)
	}
	text, args := `SELECT id FROM m WHERE m MATCH ?`, []any{strings.Join(words, " OR ")}
	if session != "" {
		text, args = text+` AND session = ?`, append(args, session)
	}
	rows, err := f.r.Query(text+` ORDER BY rank LIMIT 10`, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f *fts) Close() error {
	if err := f.r.Close(); err != nil {
		return err
	}
	return f.w.Close()
}

func (f *fts) Index(dir string, _ int, texts int64) int64 { return size(dir) - texts }

func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
