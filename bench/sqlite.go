package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	_ "modernc.org/sqlite"          // the driver "sqlite"
)

// sqlite is SQLite with one of two drivers. It uses WAL and synchronous=FULL (in WAL mode every commit is then
// synced; with NORMAL, a power failure loses commits), prepared statements, and one writing connection, because
// goroutines that queue in Go are served faster than connections that poll for the lock. Between processes only
// busy_timeout applies. Checkpoints have their defaults.
type sqlite struct {
	driver, name string
	w, r         *sql.DB
	insert, byID *sql.Stmt
	change       func() error // prepares the fields again and count on the writing connection, at its first call
	again, count *sql.Stmt    // reads a document as byID does, and increments a counter
}

func (s *sqlite) Name() string       { return s.name }
func (s *sqlite) MultiProcess() bool { return true }

func (s *sqlite) Open(dir string) error {
	file := "file:" + filepath.ToSlash(filepath.Join(dir, "bench.db"))
	dsn := file + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	if s.driver == "sqlite3" {
		dsn = file + "?_busy_timeout=30000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"
	}
	var err error
	if s.w, err = sql.Open(s.driver, dsn); err != nil {
		return err
	}
	s.w.SetMaxOpenConns(1)
	if s.r, err = sql.Open(s.driver, dsn); err != nil {
		return err
	}
	s.r.SetMaxOpenConns(runtime.NumCPU())
	s.r.SetMaxIdleConns(runtime.NumCPU())
	if _, err = s.w.Exec(`CREATE TABLE IF NOT EXISTS m (id TEXT PRIMARY KEY, doc BLOB NOT NULL)`); err != nil {
		return err
	}
	if s.insert,
		err = s.w.Prepare(`INSERT INTO m VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`); err != nil {
		return err
	}
	s.change = sync.OnceValue(s.prepareChange)
	s.byID, err = s.r.Prepare(selectDoc)
	return err
}

const selectDoc = `SELECT doc FROM m WHERE id = ?`

// prepareChange prepares the statements for Update and Increment.
func (s *sqlite) prepareChange() (err error) {
	if _, err = s.w.Exec(`CREATE TABLE IF NOT EXISTS c (id TEXT PRIMARY KEY, n INTEGER NOT NULL)`); err != nil {
		return err
	}
	if s.again, err = s.w.Prepare(selectDoc); err != nil {
		return err
	}
	s.count, err = s.w.Prepare(`INSERT INTO c VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET n = n + 1`)
	return err
}

func (s *sqlite) Put(d Doc) error {
	_, err := s.insert.Exec(d.ID, d.JSON)
	return err
}

func (s *sqlite) PutBatch(docs []Doc) error {
	tx, err := s.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmt := tx.Stmt(s.insert)
	for _, d := range docs {
		if _, err := stmt.Exec(d.ID, d.JSON); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqlite) Get(id string) (doc []byte, err error) {
	err = s.byID.QueryRow(id).Scan(&doc)
	return doc, err
}

// Update reads a document, increments a counter in it and writes it back, in one transaction that holds the write
// lock from its beginning.
func (s *sqlite) Update(id string) error {
	if err := s.change(); err != nil {
		return err
	}
	tx, err := s.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var b []byte
	if err := tx.Stmt(s.again).QueryRow(id).Scan(&b); err != nil {
		return err
	}
	if b, err = counted(b); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if _, err := tx.Stmt(s.insert).Exec(id, b); err != nil {
		return err
	}
	return tx.Commit()
}

// counted returns a document whose metadata counts one more update.
func counted(b []byte) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	metadata, ok := doc["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("the document has no metadata")
	}
	n, _ := metadata["n"].(float64)
	metadata["n"] = n + 1
	return json.Marshal(doc)
}

// Increment increments a counter in a row of another table.
func (s *sqlite) Increment(id string) error {
	if err := s.change(); err != nil {
		return err
	}
	_, err := s.count.Exec(id)
	return err
}

func (s *sqlite) Close() error {
	s.insert.Close()
	for _, of := range []*sql.Stmt{s.again, s.count} {
		if of != nil {
			of.Close()
		}
	}
	s.byID.Close()
	s.r.Close()
	return s.w.Close()
}
